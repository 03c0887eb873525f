#include "replay/recorder/driver/textures.h"

#include "replay/recorder/driver/process.h"

namespace reprise::driver {
namespace {

Mutex g_mutex;
Array<uint64_t> g_handles;

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

bool IsTexture(uint64_t value) {
  MutexLock lock(g_mutex);
  for (const uint64_t handle : g_handles)
    if (handle == value) return true;
  return false;
}

}  // namespace reprise::driver
