// Units of the kernels in programs/victims.cu, recorded once per test program,
// and what becomes of their variants. Not thread-safe.
#ifndef REPRISE_TESTS_GUARDS_VICTIMS_H_
#define REPRISE_TESTS_GUARDS_VICTIMS_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "replay/base/file_util.h"
#include "replay/compiler/compile_pool.h"
#include "replay/device/device.h"
#include "replay/engine/evaluator.h"
#include "replay/unit/unit_store.h"

namespace reprise::testing {

// Where programs/victims.cu is changed.
inline constexpr char kMoreDeviceCode[] = "// MORE DEVICE CODE";
inline constexpr char kCurve[] = "y[i] = Bend(x[i]) + bias[i];";
inline constexpr char kTotalsLoad[] =
    "tile[threadIdx.x] = i < count ? Bend(x[i]) : 0.0f;";
inline constexpr char kTotalsStore[] =
    "if (threadIdx.x == 0) table[blockIdx.x] = tile[0] * table[kBlocks];";
inline constexpr char kExact[] = "y[i] = x[i] / 3.0;";
inline constexpr char kTimed[] = "y[i] = Bend(x[i]);";
inline constexpr char kWaste[] = "for (int k = 0; k < 300; ++k) {";
inline constexpr char kReport[] =
    "if (threadIdx.x == 0) printf(\"%d values\\n\", 32);";

class Victims {
 public:
  // Builds and records the program, by this program's own verbs.
  static absl::StatusOr<std::unique_ptr<Victims>> Record();

  // The unit of a kernel, by its name in the source.
  const UnitReader& Unit(const std::string& kernel) const;
  // An evaluator with default options, made when first asked for.
  Evaluator& EvaluatorOf(const std::string& kernel);
  // One with other options.
  std::unique_ptr<Evaluator> NewEvaluator(const std::string& kernel,
                                          EvaluatorOptions options);

  // A variant with `from` replaced by `to` in the program's source; `from` must
  // be there.
  v1::Variant Replaced(const std::string& from, const std::string& to) const;
  // Twice.
  v1::Variant Replaced(const std::string& from, const std::string& to,
                       const std::string& from2, const std::string& to2) const;

  // Path and content of the source, as the units have it.
  const std::string& path() const { return path_; }
  const std::string& source() const { return source_; }
  Device& device() { return *device_; }
  CompilePool& pool() { return *pool_; }

 private:
  Victims() = default;
  absl::Status Build();
  absl::Status RecordUnits();

  std::unique_ptr<TemporaryDirectory> directory_;
  std::unique_ptr<UnitStore> store_;
  std::map<std::string, UnitReader> units_;
  std::map<std::string, std::unique_ptr<Evaluator>> evaluators_;
  std::string path_, source_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<CompilePool> pool_;
};

// Of this test program, recorded when first asked for. Ends the program where
// that fails.
Victims& SharedVictims();

// What becomes of a variant of one of them.
v1::Outcome Evaluate(const std::string& kernel, const v1::Variant& variant);

// Few pairs: the tests are about what is believed, not how exactly.
EvaluatorOptions QuickOptions();

}  // namespace reprise::testing

#endif  // REPRISE_TESTS_GUARDS_VICTIMS_H_
