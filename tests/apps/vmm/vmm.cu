// The program's own virtual memory management: an array that grows in place by
// mapping another piece of memory behind it, and whose pieces are then mapped
// in the other order. Results are exact.
// --size: number of pieces, each of the device's allocation granularity.
#include "../common/app.h"
#include "../common/driver.h"

constexpr int kBlock = 256;

// values[i] = 3 values[i] + i, modulo 2^32, for i in [0, count).
__global__ void AdvanceMappedKernel(unsigned int* values, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] = values[i] * 3u + static_cast<unsigned int>(i);
}

// An array of equal pieces in a reserved address range.
struct Pieces {
  CUdeviceptr address = 0;
  size_t piece_bytes = 0;
  CUmemAllocationProp properties = {};
  std::vector<CUmemGenericAllocationHandle> handles;

  unsigned int* values() const {
    return reinterpret_cast<unsigned int*>(address);
  }
  int piece_values() const {
    return static_cast<int>(piece_bytes / sizeof(unsigned int));
  }
};

Pieces Reserve(int pieces) {
  Pieces array;
  CUDA_CHECK(cudaGetDevice(&array.properties.location.id));
  array.properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  array.properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CU_CHECK(cuMemGetAllocationGranularity(&array.piece_bytes, &array.properties,
                                         CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  CU_CHECK(
      cuMemAddressReserve(&array.address, array.piece_bytes * pieces, 0, 0, 0));
  return array;
}

// Maps handle `index` at its place and lets the device use it.
void Map(const Pieces& array, int index) {
  const CUdeviceptr address = array.address + index * array.piece_bytes;
  CU_CHECK(cuMemMap(address, array.piece_bytes, 0, array.handles[index], 0));
  CUmemAccessDesc access = {};
  access.location = array.properties.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  CU_CHECK(cuMemSetAccess(address, array.piece_bytes, &access, 1));
}

void Grow(Pieces& array) {
  CUmemGenericAllocationHandle handle;
  CU_CHECK(cuMemCreate(&handle, array.piece_bytes, &array.properties, 0));
  array.handles.push_back(handle);
  const int last = static_cast<int>(array.handles.size()) - 1;
  Map(array, last);
  CUDA_CHECK(cudaMemset(array.values() + last * array.piece_values(), 0,
                        array.piece_bytes));
}

// Unmaps every piece and maps them again in the other order.
void Turn(Pieces& array) {
  const int pieces = static_cast<int>(array.handles.size());
  CU_CHECK(cuMemUnmap(array.address, array.piece_bytes * pieces));
  std::reverse(array.handles.begin(), array.handles.end());
  for (int p = 0; p < pieces; ++p) Map(array, p);
}

void Release(const Pieces& array) {
  const size_t bytes = array.piece_bytes * array.handles.size();
  CU_CHECK(cuMemUnmap(array.address, bytes));
  for (CUmemGenericAllocationHandle handle : array.handles) {
    CU_CHECK(cuMemRelease(handle));
  }
  CU_CHECK(cuMemAddressFree(array.address, bytes));
}

void Advance(const Pieces& array) {
  const int count =
      static_cast<int>(array.handles.size()) * array.piece_values();
  AdvanceMappedKernel<<<apps::BlocksFor(count, kBlock), kBlock>>>(
      array.values(), count);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
}

void AdvanceOnHost(std::vector<unsigned int>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = values[i] * 3u + static_cast<unsigned int>(i);
  }
}

int main(int argc, char** argv) {
  const apps::Options options =
      apps::ParseOptions(argc, argv, "vmm", {8, 3, 512, "number of pieces"});
  const int pieces = static_cast<int>(options.size);
  CUDA_CHECK(cudaSetDevice(0));  // creates the context
  CUDA_CHECK(cudaFree(nullptr));
  Pieces array = Reserve(pieces);

  std::vector<unsigned int> values;
  for (int p = 0; p < pieces; ++p) {
    Grow(array);
    values.resize(static_cast<size_t>(p + 1) * array.piece_values(), 0);
    Advance(array);
    AdvanceOnHost(values);
  }
  for (int iteration = 0; iteration < options.iterations; ++iteration) {
    Turn(array);
    Advance(array);
    std::vector<unsigned int> turned;
    for (int p = pieces - 1; p >= 0; --p) {
      const auto first = values.begin() + p * array.piece_values();
      turned.insert(turned.end(), first, first + array.piece_values());
    }
    values.swap(turned);
    AdvanceOnHost(values);
  }

  apps::Checker checker;
  std::vector<unsigned int> got(values.size());
  CUDA_CHECK(cudaMemcpy(got.data(), array.values(),
                        got.size() * sizeof(unsigned int),
                        cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < got.size(); ++i) {
    checker.Expect("value", i, got[i], values[i], apps::kExact);
  }
  Release(array);
  return checker.Finish();
}
