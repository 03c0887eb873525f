#include "replay/device/cuda/executor/gpu.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "replay/base/status_macros.h"

namespace reprise::cuda {
namespace {

// Enough blocks for every multiprocessor to be full of support threads.
constexpr uint64_t kBlocksPerMultiprocessor = 8;
// More than the host takes to record an event and submit a launch.
constexpr uint64_t kDelayNs = 30000;

// As NVIDIA's tools write it: "GPU-8ca5f4a1-...".
std::string UuidText(const CUuuid& uuid) {
  std::string text = "GPU-";
  for (size_t i = 0; i < sizeof(uuid.bytes); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    absl::StrAppend(
        &text, absl::Hex(static_cast<uint8_t>(uuid.bytes[i]), absl::kZeroPad2));
  }
  return text;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Gpu>> Gpu::Create(int ordinal) {
  auto gpu = std::unique_ptr<Gpu>(new Gpu);
  RETURN_IF_ERROR(gpu->Initialize(ordinal));
  return gpu;
}

absl::Status Gpu::Initialize(int ordinal) {
  ASSIGN_OR_RETURN(driver_, Driver::Load());
  const Driver& d = *driver_;
  CUDA_RETURN_IF_ERROR(d, Init, (0));
  int count = 0;
  CUDA_RETURN_IF_ERROR(d, DeviceGetCount, (&count));
  if (ordinal >= count) {
    return absl::NotFoundError(absl::StrCat("got device cuda:", ordinal,
                                            ", but this machine has ", count,
                                            " CUDA devices"));
  }
  CUDA_RETURN_IF_ERROR(d, DeviceGet, (&device_, ordinal));
  CUDA_RETURN_IF_ERROR(d, DevicePrimaryCtxRetain, (&context_, device_));
  CUDA_RETURN_IF_ERROR(d, CtxSetCurrent, (context_));
  CUDA_RETURN_IF_ERROR(d, StreamCreate, (&stream_, CU_STREAM_NON_BLOCKING));
  CUDA_RETURN_IF_ERROR(d, EventCreate, (&start_, CU_EVENT_DEFAULT));
  CUDA_RETURN_IF_ERROR(d, EventCreate, (&stop_, CU_EVENT_DEFAULT));
  RETURN_IF_ERROR(ReadFacts());
  RETURN_IF_ERROR(LoadSupportKernels());
  flush_bytes_ = 2 * facts_.l2_bytes();
  if (flush_bytes_ == 0) return absl::OkStatus();
  CUdeviceptr flush = 0;
  CUDA_RETURN_IF_ERROR(d, MemAlloc, (&flush, 2 * flush_bytes_));
  flush_ = flush;
  return absl::OkStatus();
}

absl::StatusOr<int> Gpu::Attribute(CUdevice_attribute attribute) const {
  int value = 0;
  CUDA_RETURN_IF_ERROR(*driver_, DeviceGetAttribute,
                       (&value, attribute, device_));
  return value;
}

absl::StatusOr<std::string> Gpu::PciBusId() const {
  char id[32] = {};
  CUDA_RETURN_IF_ERROR(*driver_, DeviceGetPCIBusId,
                       (id, sizeof(id) - 1, device_));
  return std::string(id);
}

absl::Status Gpu::ReadFacts() {
  char name[256] = {};
  CUDA_RETURN_IF_ERROR(*driver_, DeviceGetName,
                       (name, sizeof(name) - 1, device_));
  facts_.set_name(name);
  int version = 0;
  CUDA_RETURN_IF_ERROR(*driver_, DriverGetVersion, (&version));
  facts_.set_driver_version(static_cast<uint32_t>(version));
  CUuuid uuid = {};
  CUDA_RETURN_IF_ERROR(*driver_, DeviceGetUuid, (&uuid, device_));
  facts_.set_uuid(UuidText(uuid));
  struct {
    CUdevice_attribute attribute;
    void (v1::CudaDeviceFacts::*set)(uint32_t);
  } const small[] = {
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
       &v1::CudaDeviceFacts::set_compute_capability_major},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
       &v1::CudaDeviceFacts::set_compute_capability_minor},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
       &v1::CudaDeviceFacts::set_max_threads_per_block},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
       &v1::CudaDeviceFacts::set_max_shared_bytes_per_block},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
       &v1::CudaDeviceFacts::set_multiprocessors},
  };
  for (const auto& fact : small) {
    ASSIGN_OR_RETURN(const int value, Attribute(fact.attribute));
    (facts_.*fact.set)(static_cast<uint32_t>(value));
  }
  ASSIGN_OR_RETURN(const int l2, Attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE));
  facts_.set_l2_bytes(static_cast<uint64_t>(std::max(l2, 0)));
  return absl::OkStatus();
}

absl::Status Gpu::LoadSupportKernels() {
  RETURN_IF_ERROR(driver_->CheckLoad(
      driver_->ModuleLoadData(&support_, SupportKernelsPtx()),
      SupportKernelsPtx()));
  const std::pair<CUfunction*, const char*> kernels[] = {
      {&copy_, kCopyKernel},
      {&poison_, kPoisonKernel},
      {&compare_, kCompareKernel},
      {&store_words_, kStoreWordsKernel},
      {&delay_, kDelayKernel},
      {&stream_write_, kStreamWriteKernel},
      {&stream_read_, kStreamReadKernel},
      {&multiply_add_32_, kMultiplyAdd32Kernel},
      {&multiply_add_64_, kMultiplyAdd64Kernel}};
  for (const auto& [function, name] : kernels)
    CUDA_RETURN_IF_ERROR(*driver_, ModuleGetFunction,
                         (function, support_, name));
  return absl::OkStatus();
}

absl::Status Gpu::Upload(uint64_t to, const void* from, uint64_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  CUDA_RETURN_IF_ERROR(*driver_, MemcpyHtoDAsync, (to, from, bytes, stream_));
  return absl::OkStatus();
}

absl::Status Gpu::Download(void* to, uint64_t from, uint64_t bytes) {
  if (bytes != 0)
    CUDA_RETURN_IF_ERROR(*driver_, MemcpyDtoHAsync, (to, from, bytes, stream_));
  return Synchronize();
}

absl::Status Gpu::Copy(uint64_t to, uint64_t from, uint64_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  CUDA_RETURN_IF_ERROR(*driver_, MemcpyDtoDAsync, (to, from, bytes, stream_));
  return absl::OkStatus();
}

absl::Status Gpu::Fill(uint64_t to, uint8_t value, uint64_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  CUDA_RETURN_IF_ERROR(*driver_, MemsetD8Async, (to, value, bytes, stream_));
  return absl::OkStatus();
}

absl::Status Gpu::Synchronize() {
  CUDA_RETURN_IF_ERROR(*driver_, StreamSynchronize, (stream_));
  return absl::OkStatus();
}

absl::Status Gpu::Run(CUfunction function, uint64_t threads, void** arguments) {
  if (threads == 0) return absl::OkStatus();
  const uint64_t most = SupportThreads() / kSupportBlock;
  CUlaunchConfig config = {};
  config.gridDimX = static_cast<unsigned>(
      std::min((threads + kSupportBlock - 1) / kSupportBlock, most));
  config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = kSupportBlock;
  config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream_;
  CUDA_RETURN_IF_ERROR(*driver_, LaunchKernelEx,
                       (&config, function, arguments, nullptr));
  return absl::OkStatus();
}

absl::Status Gpu::CopyTiles(uint64_t tiles, uint64_t count, uint32_t lanes) {
  void* arguments[] = {&tiles, &count, &lanes};
  return Run(copy_, count * lanes, arguments);
}

absl::Status Gpu::PoisonTiles(uint64_t tiles, uint64_t count, uint32_t lanes,
                              uint64_t seed) {
  void* arguments[] = {&tiles, &count, &lanes, &seed};
  return Run(poison_, count * lanes, arguments);
}

absl::Status Gpu::CompareTiles(uint64_t tiles, uint64_t count, uint64_t jobs,
                               uint64_t counts) {
  void* arguments[] = {&tiles, &count, &jobs, &counts};
  return Run(compare_, count * kSupportBlock, arguments);
}

absl::Status Gpu::StoreWords(uint64_t words, uint64_t count) {
  void* arguments[] = {&words, &count};
  return Run(store_words_, count, arguments);
}

uint64_t Gpu::SupportThreads() const {
  return std::max<uint64_t>(facts_.multiprocessors(), 1) *
         kBlocksPerMultiprocessor * kSupportBlock;
}

absl::Status Gpu::StreamWrite(uint64_t at, uint64_t bytes, uint32_t rounds) {
  void* arguments[] = {&at, &bytes, &rounds};
  return Run(stream_write_, SupportThreads(), arguments);
}

absl::Status Gpu::StreamRead(uint64_t from, uint64_t bytes, uint64_t sink) {
  uint32_t rounds = 1;
  void* arguments[] = {&from, &bytes, &rounds, &sink};
  return Run(stream_read_, SupportThreads(), arguments);
}

absl::Status Gpu::MultiplyAdd(bool wide, uint32_t rounds, uint64_t sink) {
  void* arguments[] = {&rounds, &sink};
  return Run(wide ? multiply_add_64_ : multiply_add_32_, SupportThreads(),
             arguments);
}

absl::Status Gpu::FlushL2() { return Fill(flush_, 0, flush_bytes_); }

absl::Status Gpu::CleanL2() {
  if (flush_bytes_ == 0) return absl::OkStatus();
  // Bytes that FlushL2 does not write. Twice: which lines a cache gives up is
  // its own choice.
  const uint64_t clean = flush_ + flush_bytes_;
  RETURN_IF_ERROR(StreamRead(clean, flush_bytes_, clean));
  return StreamRead(clean, flush_bytes_, clean);
}

absl::Status Gpu::Delay() {
  uint64_t nanoseconds = kDelayNs;
  void* arguments[] = {&nanoseconds};
  CUlaunchConfig config = {};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream_;
  CUDA_RETURN_IF_ERROR(*driver_, LaunchKernelEx,
                       (&config, delay_, arguments, nullptr));
  return absl::OkStatus();
}

absl::Status Gpu::RecordStart() {
  CUDA_RETURN_IF_ERROR(*driver_, EventRecord, (start_, stream_));
  return absl::OkStatus();
}

CUresult Gpu::RecordStop() const {
  return driver_->EventRecord(stop_, stream_);
}

absl::StatusOr<double> Gpu::ElapsedNs() {
  float milliseconds = 0;
  CUDA_RETURN_IF_ERROR(*driver_, EventElapsedTime,
                       (&milliseconds, start_, stop_));
  return static_cast<double>(milliseconds) * 1e6;
}

}  // namespace reprise::cuda
