#include "replay/recorder/driver/textures.h"

#include <string.h>

#include "replay/recorder/driver/process.h"

namespace reprise::driver {
namespace {

Mutex g_mutex;
Array<uint64_t> g_handles;

// Requires g_mutex.
bool IsTexture(uint64_t value) {
  for (const uint64_t handle : g_handles)
    if (handle == value) return true;
  return false;
}

}  // namespace

void AddTexture(uint64_t handle) {
  MutexLock lock(g_mutex);
  g_handles.Append(handle);
}

void ForgetTexture(uint64_t handle) {
  MutexLock lock(g_mutex);
  for (size_t i = g_handles.size(); i-- > 0;) {
    if (g_handles[i] != handle) continue;
    g_handles.Remove(i);
    return;
  }
}

bool HoldsTexture(const Kernel& kernel, const unsigned char* arguments) {
  constexpr uint32_t kHandleBytes = sizeof(uint64_t);
  MutexLock lock(g_mutex);
  if (g_handles.empty()) return false;
  for (uint32_t i = 0; i < kernel.parameter_count; ++i) {
    const driver_wire::Parameter& parameter = kernel.parameters[i];
    const uint32_t end = parameter.offset + parameter.bytes;
    uint32_t at =
        (parameter.offset + kHandleBytes - 1) / kHandleBytes * kHandleBytes;
    for (; at + kHandleBytes <= end; at += kHandleBytes) {
      uint64_t value = 0;
      memcpy(&value, arguments + at, kHandleBytes);
      if (IsTexture(value)) return true;
    }
  }
  return false;
}

}  // namespace reprise::driver
