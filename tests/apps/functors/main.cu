// Functors and lambdas launched the way performance-portability libraries do:
// by value as a parameter, staged in constant memory and in global memory, from
// three translation units that use the same names. Results are exact.
// --size: number of values.
#include "../common/app.h"
#include "launch.h"
#include "stages.h"

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "functors", {1 << 22, 10007, 1 << 28, "number of values"});
  const int count = static_cast<int>(options.size);
  std::vector<unsigned int> values(count);
  for (int i = 0; i < count; ++i) values[i] = apps::HashBits(1, i);
  Table table;
  for (int e = 0; e < Table::kEntries; ++e) {
    table.entries[e] = apps::HashBits(2, e);
  }
  apps::DeviceArray<unsigned int> device_values(values);
  unsigned int* data = device_values.get();
  const unsigned int factor = 5;

  apps::RunIterations(options, [&] {
    launch::ByParameter(count, [=] __device__(int i) { data[i] *= factor; });
    RunFirst(data, count, table);
    launch::ByParameter(count, [=] __device__(int i) {
      data[i] += factor + static_cast<unsigned int>(i);
    });
    RunSecond(data, count, table);
  });

  const std::vector<unsigned int> got = device_values.ToHost();
  apps::Checker checker;
  for (int i = 0; i < count; ++i) {
    unsigned int value = values[i];
    const int entry = i % Table::kEntries;
    for (int iteration = 0; iteration < options.iterations; ++iteration) {
      value = value * factor + table.entries[entry];
      value ^= value >> 5;
      value += factor + static_cast<unsigned int>(i);
      value = value * 3u + table.entries[Table::kEntries - 1 - entry];
      value ^= value << 3;
    }
    checker.Expect("value", i, got[i], value, apps::kExact);
  }
  return checker.Finish();
}
