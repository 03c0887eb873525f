#include "replay/recorder/preload/modules.h"

namespace reprise::standin {
namespace {

constexpr uint32_t kWrapperMagic = 0x466243b1;
constexpr uint32_t kWrapperLinked = 2;
constexpr uint32_t kFatbinMagic = 0xba55ed50;
constexpr size_t kMaxParts = 1 << 16;

// As fatbinary_section.h has it.
struct FatbinWrapper {
  uint32_t magic;
  uint32_t version;
  const void* data;
  const void* parts;  // version 2: null-terminated array of fatbins
};

struct FatbinHeader {
  uint32_t magic;
  uint16_t version;
  uint16_t header_bytes;
  uint64_t payload_bytes;
};

// A hash table from addresses to objects that are never deleted.
class PointerMap {
 public:
  constexpr PointerMap() = default;

  void* Find(const void* key) const {
    if (slots_ == nullptr) return nullptr;
    for (size_t i = Hash(key);; ++i) {
      const Slot& slot = slots_[i & (capacity_ - 1)];
      if (slot.key == key) return slot.value;
      if (slot.key == nullptr) return nullptr;
    }
  }

  void Set(const void* key, void* value) {
    if (key == nullptr) return;
    if ((used_ + 1) * 2 > capacity_ && !Grow()) return;
    for (size_t i = Hash(key);; ++i) {
      Slot& slot = slots_[i & (capacity_ - 1)];
      if (slot.key == nullptr) ++used_;
      if (slot.key == nullptr || slot.key == key) {
        slot = Slot{key, value};
        return;
      }
    }
  }

  template <typename Visit>
  void ForEach(const Visit& visit) {
    for (size_t i = 0; i < capacity_; ++i)
      if (slots_[i].value != nullptr) visit(slots_[i].value);
  }

 private:
  struct Slot {
    const void* key;
    void* value;
  };

  static size_t Hash(const void* key) {
    return static_cast<size_t>(
        (reinterpret_cast<uint64_t>(key) * 0x9e3779b97f4a7c15ull) >> 20);
  }

  bool Grow() {
    PointerMap larger;
    larger.capacity_ = capacity_ == 0 ? 256 : capacity_ * 2;
    larger.slots_ = static_cast<Slot*>(calloc(larger.capacity_, sizeof(Slot)));
    if (larger.slots_ == nullptr) return false;
    for (size_t i = 0; i < capacity_; ++i)
      larger.Set(slots_[i].key, slots_[i].value);
    free(slots_);
    *this = larger;
    return true;
  }

  Slot* slots_ = nullptr;
  size_t capacity_ = 0;  // a power of two
  size_t used_ = 0;
};

constinit PointerMap functions;
constinit PointerMap variables;
constinit Array<Module*> modules;

// Zeroed objects for the life of the process: handles to them may be used by
// exit handlers.
template <typename T>
T* New() {
  void* memory = calloc(1, sizeof(T));
  if (memory == nullptr) {
    Say("out of memory while device code was registered");
    abort();
  }
  T initial;
  memcpy(memory, static_cast<const void*>(&initial), sizeof(T));
  return static_cast<T*>(memory);
}

uint64_t ImageBytes(const void* image) {
  FatbinHeader header{};
  if (image == nullptr) return 0;
  memcpy(&header, image, sizeof(header));
  if (header.magic != kFatbinMagic) return 0;
  return header.header_bytes + header.payload_bytes;
}

// All images of a module, the registered one first.
bool CollectImages(const Module& module, Array<Bytes>* images) {
  if (!images->Append(Bytes{module.image, ImageBytes(module.image)}))
    return false;
  if (module.parts == nullptr) return true;
  for (size_t i = 0; i < kMaxParts && module.parts[i] != nullptr; ++i) {
    const uint64_t bytes = ImageBytes(module.parts[i]);
    if (bytes > 0 && !images->Append(Bytes{module.parts[i], bytes}))
      return false;
  }
  return true;
}

bool SendModule(Context& context, Module& module) {
  if (module.sent) return true;
  Array<Bytes> images;
  if (!CollectImages(module, &images)) return false;
  uint64_t total = sizeof(wire::RegisterModuleNotice);
  for (const Bytes& image : images) total += sizeof(uint64_t) + image.size;
  const wire::RegisterModuleNotice notice{module.id, images.size()};
  Channel& channel = context.channel;
  bool sent = channel.SendHeader(wire::kRegisterModule, total) &&
              channel.SendBytes(&notice, sizeof(notice));
  for (const Bytes& image : images) {
    const uint64_t size = image.size;
    sent = sent && channel.SendBytes(&size, sizeof(size));
  }
  for (const Bytes& image : images)
    sent = sent && channel.SendBytes(image.data, image.size);
  free(images.data());
  module.sent = sent;
  return sent;
}

bool Ask(Context& context, wire::MessageType type, Module& module,
         const char* name, uint64_t* answer_bytes) {
  return SendModule(context, module) &&
         context.channel.Send(type, wire::NameRequest{module.id},
                              Bytes{name, strlen(name)}) &&
         context.channel.ReceiveHeader(type, answer_bytes);
}

}  // namespace

Function* FindFunction(const void* key) {
  return static_cast<Function*>(functions.Find(key));
}

cudaError_t Resolve(Context& context, Function& function) {
  if (function.resolved) return function.error;
  if (!function.module->live) return cudaErrorInvalidDeviceFunction;
  uint64_t bytes = 0;
  wire::FunctionReply reply;
  if (!Ask(context, wire::kFunction, *function.module, function.name, &bytes) ||
      bytes < sizeof(reply) || !context.channel.Receive(&reply, sizeof(reply)))
    return context.Lost();
  function.parameters.clear();
  if (reply.parameter_count > wire::kMaxParameters ||
      bytes != sizeof(reply) + reply.parameter_count * sizeof(wire::Parameter))
    return context.Lost();
  for (uint32_t i = 0; i < reply.parameter_count; ++i) {
    wire::Parameter parameter;
    if (!context.channel.Receive(&parameter, sizeof(parameter)) ||
        !function.parameters.Append(parameter))
      return context.Lost();
  }
  context.Exclude(reply.excluded_ns);
  function.resolved = true;
  function.info = reply;
  function.error = static_cast<cudaError_t>(reply.error);
  return function.error;
}

Variable* FindVariable(const void* host) {
  return static_cast<Variable*>(variables.Find(host));
}

cudaError_t Resolve(Context& context, Variable& variable) {
  if (variable.resolved) return variable.error;
  if (!variable.module->live) return cudaErrorInvalidSymbol;
  uint64_t bytes = 0;
  wire::VariableReply reply;
  if (!Ask(context, wire::kVariable, *variable.module, variable.name, &bytes) ||
      bytes != sizeof(reply) || !context.channel.Receive(&reply, sizeof(reply)))
    return context.Lost();
  context.Exclude(reply.excluded_ns);
  variable.resolved = true;
  variable.error = static_cast<cudaError_t>(reply.error);
  variable.address = reply.address;
  if (variable.bytes == 0) variable.bytes = reply.bytes;
  if (variable.managed != nullptr && variable.error == cudaSuccess)
    *variable.managed = reinterpret_cast<void*>(variable.address);
  return variable.error;
}

void ForgetResolutions() {
  for (Module* module : modules) module->sent = false;
  functions.ForEach([](void* function) {
    static_cast<Function*>(function)->resolved = false;
  });
  variables.ForEach([](void* variable) {
    static_cast<Variable*>(variable)->resolved = false;
  });
}

}  // namespace reprise::standin

namespace standin = reprise::standin;

namespace {

void RegisterVariable(void** handle, const void* host, void** managed,
                      const char* name, size_t bytes) {
  standin::MutexLock lock(standin::TheContext().mutex);
  auto* variable = standin::New<standin::Variable>();
  variable->module = reinterpret_cast<standin::Module*>(handle);
  variable->host = host;
  variable->managed = managed;
  variable->name = strdup(name);
  variable->bytes = bytes;
  standin::variables.Set(host, variable);
}

}  // namespace

extern "C" {

void** __cudaRegisterFatBinary(void* wrapper) {
  standin::MutexLock lock(standin::TheContext().mutex);
  auto* module = standin::New<standin::Module>();
  module->id = standin::modules.size() + 1;
  const auto* fatbin = static_cast<const standin::FatbinWrapper*>(wrapper);
  if (fatbin->magic == standin::kWrapperMagic) {
    module->image = fatbin->data;
    if (fatbin->version == standin::kWrapperLinked)
      module->parts = static_cast<const void* const*>(fatbin->parts);
  }
  standin::modules.Append(module);
  return reinterpret_cast<void**>(module);
}

void __cudaRegisterFatBinaryEnd(void**) {}

void __cudaUnregisterFatBinary(void** handle) {
  standin::MutexLock lock(standin::TheContext().mutex);
  auto* module = reinterpret_cast<standin::Module*>(handle);
  if (module == nullptr || !module->live) return;
  module->live = false;
  if (!module->sent) return;
  const reprise::wire::UnregisterModuleNotice notice{module->id};
  // At exit the recorder may be gone already; nothing is lost then.
  standin::TheContext().channel.Send(reprise::wire::kUnregisterModule, notice);
}

void __cudaRegisterFunction(void** handle, const char* host, char*,
                            const char* name, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {
  standin::MutexLock lock(standin::TheContext().mutex);
  const standin::Function* known = standin::FindFunction(host);
  if (known != nullptr && known->module->live) return;
  auto* function = standin::New<standin::Function>();
  function->module = reinterpret_cast<standin::Module*>(handle);
  function->host = host;
  function->name = strdup(name);
  standin::functions.Set(host, function);
  standin::functions.Set(function, function);  // as a cudaKernel_t
}

void __cudaRegisterVar(void** handle, char* host, char*, const char* name, int,
                       size_t bytes, int, int) {
  RegisterVariable(handle, host, nullptr, name, bytes);
}

void __cudaRegisterManagedVar(void** handle, void** host, char*,
                              const char* name, int, size_t bytes, int, int) {
  RegisterVariable(handle, host, host, name, bytes);
}

// nvcc's code calls this before it reads a managed variable's address.
char __cudaInitModule(void** handle) {
  standin::ContextLock context;
  if (!context.ok()) return 0;
  auto* module = reinterpret_cast<standin::Module*>(handle);
  standin::variables.ForEach([&](void* found) {
    auto* variable = static_cast<standin::Variable*>(found);
    if (variable->module == module && variable->managed != nullptr)
      standin::Resolve(*context, *variable);
  });
  return 1;
}

}  // extern "C"
