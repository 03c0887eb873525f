// Instructions of inline PTX on the cpu device against the same instructions on
// an H200: kernels/ptx_cases.cu, compiled here by Clang and lowered, and there
// by nvcc. ptx_cases.truth holds what the GPU gave.
//
// With REPRISE_PTX_RESULTS=FILE what the cpu device gave is also written: of
// each instruction its digest, the digests of its rows and its picked results.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/replay/device/device_test_util.h"
#include "tests/replay/device/kernels/ptx_cases.h"

namespace reprise {
namespace {

struct PtxCase {
  const char* id;
  const char* text;
  bool exact;
};

constexpr PtxCase kCases[] = {
#define PTX_EXACT1(id, text, ...) {#id, text, true},
#define PTX_EXACT2 PTX_EXACT1
#define PTX_EXACT3 PTX_EXACT1
#define PTX_EXACT4 PTX_EXACT1
#define PTX_APPROXIMATE1(id, text, ...) {#id, text, false},
#define PTX_APPROXIMATE2 PTX_APPROXIMATE1
#include "tests/replay/device/kernels/ptx_cases.inc"
};
constexpr size_t kCaseCount = std::size(kCases);
// Kernels compiled together.
constexpr size_t kGroup = 128;

struct Results {
  uint64_t digest = 0;
  std::vector<uint64_t> rows;
  std::vector<uint64_t> picks;
};

class PtxCasesTest : public testing::TestWithParam<size_t> {
 protected:
  static std::string KernelOf(const PtxCase& one) {
    return absl::StrCat("PtxCase_", one.id);
  }
  static std::vector<PtxCase> Group() {
    const size_t end = std::min(GetParam() + kGroup, kCaseCount);
    return {kCases + GetParam(), kCases + end};
  }
  void SetUp() override {
    LoweringOptions options;
    for (const PtxCase& one : Group()) options.kernels.push_back(KernelOf(one));
    const absl::Status status =
        machine_.Load("ptx_cases", options, "default<O1>");
    ASSERT_TRUE(status.ok()) << status;
    rows_ = machine_.Allocate(kPtxRows * 8);
    picks_ = machine_.Allocate(kPtxRows * 8);
  }
  Results Run(const PtxCase& one) {
    std::memset(machine_.host<char>(rows_), 0, kPtxRows * 8);
    machine_.Run(KernelOf(one), MakeLaunch({64}, {128}),
                 Arguments().Add(rows_).Add(picks_));
    Results results;
    results.rows = machine_.Download<uint64_t>(rows_, kPtxRows);
    results.picks = machine_.Download<uint64_t>(picks_, kPtxRows);
    for (const uint64_t row : results.rows)
      results.digest = results.digest * 0x9e3779b97f4a7c15u + row;
    return results;
  }
  TestMachine machine_;
  uint64_t rows_ = 0;
  uint64_t picks_ = 0;
};

void Append(const char* file, const PtxCase& one, const Results& results) {
  std::ofstream out(file, std::ios::app);
  out << one.id << " "
      << absl::StrCat(absl::Hex(results.digest, absl::kZeroPad16)) << "\nrows";
  for (const uint64_t row : results.rows)
    out << " " << absl::StrCat(absl::Hex(row >> 48, absl::kZeroPad4));
  out << "\npicks";
  for (const uint64_t pick : results.picks)
    out << " " << absl::StrCat(absl::Hex(pick));
  out << "\n";
}

// How far an approximation may be from the GPU's: relatively, or absolutely.
struct Bound {
  const char* prefix;
  double relative;
  double absolute;
};
constexpr Bound kBounds[] = {
    {"sin_approx", 0, 0x1p-20},
    {"cos_approx", 0, 0x1p-20},
    {"ex2_approx_f32", 0x1p-22, 0},
    {"ex2_approx_ftz_f32", 0x1p-22, 0},
    {"ex2_approx", 0x1p-10, 0},
    {"lg2_approx", 0x1p-22, 0x1p-22},
    {"tanh_approx_f32", 0x1p-16, 0},
    {"tanh_approx_f16", 0x1p-9, 0},
    {"tanh_approx_bf16", 0x1p-6, 0},
    {"rsqrt_approx_f64", 0x1p-51, 0},
    {"rsqrt_approx_ftz_f64", 0x1p-20, 0},
    {"rcp_approx_ftz_f64", 0x1p-19, 0},
    {"", 0x1p-22, 0},
};

double FromHalf(uint64_t bits) {
  _Float16 value;
  std::memcpy(&value, &bits, 2);
  return static_cast<double>(value);
}
double FromFloat(uint64_t bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}
double FromDouble(uint64_t bits) {
  double value;
  std::memcpy(&value, &bits, 8);
  return value;
}

// The numbers in a result of the type that the identifier ends with.
std::vector<double> Numbers(const std::string& id, uint64_t bits) {
  const std::string type = id.substr(id.rfind('_') + 1);
  if (type == "f16") return {FromHalf(bits)};
  if (type == "f16x2") return {FromHalf(bits & 0xffff), FromHalf(bits >> 16)};
  if (type == "bf16") return {FromFloat(bits << 16)};
  if (type == "bf16x2")
    return {FromFloat(bits << 16 & 0xffffffff), FromFloat(bits & 0xffff0000)};
  return {type == "f32" ? FromFloat(bits) : FromDouble(bits)};
}

bool IsNear(double got, double expected, const Bound& bound) {
  if (got == expected || (std::isnan(got) && std::isnan(expected))) return true;
  return std::fabs(got - expected) <=
         bound.absolute + bound.relative * std::fabs(expected);
}

void ExpectNear(const std::string& id, const std::vector<uint64_t>& got,
                const std::vector<uint64_t>& expected) {
  ASSERT_EQ(got.size(), expected.size()) << id;
  const Bound* bound = kBounds;
  while (!absl::StartsWith(id, bound->prefix)) ++bound;
  for (size_t i = 0; i < got.size(); ++i) {
    const auto numbers = Numbers(id, got[i]);
    const auto wanted = Numbers(id, expected[i]);
    for (size_t lane = 0; lane < numbers.size(); ++lane) {
      EXPECT_TRUE(IsNear(numbers[lane], wanted[lane], *bound))
          << id << ", result " << i << ": got " << numbers[lane]
          << ", the GPU gave " << wanted[lane];
    }
  }
}

// "id digest" of what is exact, "id pick.." of approximations, in hexadecimal.
std::map<std::string, std::vector<uint64_t>> Truth() {
  const char* source = std::getenv("REPRISE_SOURCE_DIR");
  EXPECT_NE(source, nullptr) << "set REPRISE_SOURCE_DIR, as ctest does";
  std::ifstream file(absl::StrCat(source == nullptr ? "." : source,
                                  "/tests/replay/device/ptx_cases.truth"));
  std::map<std::string, std::vector<uint64_t>> truth;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string id;
    words >> id >> std::hex;
    for (uint64_t word; words >> word;) truth[id].push_back(word);
  }
  return truth;
}

TEST_P(PtxCasesTest, GivesWhatTheGpuGives) {
  const auto truth = Truth();
  for (const PtxCase& one : Group()) {
    const Results results = Run(one);
    if (const char* file = std::getenv("REPRISE_PTX_RESULTS"))
      Append(file, one, results);
    const auto expected = truth.find(one.id);
    ASSERT_TRUE(expected != truth.end())
        << one.id << " is not in ptx_cases.truth: run it on a GPU";
    if (one.exact) {
      EXPECT_EQ(results.digest, expected->second.at(0)) << one.text;
    } else {
      ExpectNear(one.id, results.picks, expected->second);
    }
  }
}

std::vector<size_t> Groups() {
  std::vector<size_t> firsts;
  for (size_t first = 0; first < kCaseCount; first += kGroup)
    firsts.push_back(first);
  return firsts;
}
INSTANTIATE_TEST_SUITE_P(Groups, PtxCasesTest, testing::ValuesIn(Groups()));

}  // namespace
}  // namespace reprise
