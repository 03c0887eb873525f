#include "evolution/llm/feedback.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace reprise::evolution {
namespace {

double MedianOf(const google::protobuf::RepeatedField<double>& values) {
  if (values.empty()) return 0;
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted[sorted.size() / 2];
}

std::string Share(double value, double ceiling) {
  return ceiling > 0 ? absl::StrCat(" (", Rounded(100 * value / ceiling),
                                    " % of ", Rounded(ceiling), ")")
                     : "";
}

void AddRates(double ns, const KernelWork& work, std::vector<Fact>* facts) {
  const v1::DeviceCeilings& ceilings = work.ceilings;
  double least_ns = 0;
  if (work.bytes > 0) {
    const double rate = work.bytes / ns;  // bytes per ns are GB/s
    facts->push_back(
        {"bandwidth", absl::StrCat(Rounded(rate), " GB/s",
                                   Share(rate, ceilings.dram_read_gb_s()))});
    if (ceilings.dram_read_gb_s() > 0)
      least_ns = work.bytes / ceilings.dram_read_gb_s();
  }
  if (work.flops > 0) {
    const double rate = work.flops / ns;
    facts->push_back(
        {"arithmetic", absl::StrCat(Rounded(rate), " GFLOP/s",
                                    Share(rate, ceilings.f32_gflops()))});
    if (ceilings.f32_gflops() > 0)
      least_ns = std::max(least_ns, work.flops / ceilings.f32_gflops());
  }
  if (least_ns > 0) {
    facts->push_back(
        {"roofline", absl::StrCat("at least ", Rounded(least_ns / 1000),
                                  " us for this work")});
  }
}

void AddErrors(const v1::Outcome& outcome, std::vector<Fact>* facts) {
  for (const v1::RangeErrors& errors : outcome.errors()) {
    if (errors.outside_write_set()) {
      facts->push_back(
          {"wrote outside", absl::StrCat("memory of ", errors.name(),
                                         " that the recorded "
                                         "launch left alone")});
    }
    if (errors.wrong_elements() == 0) continue;
    facts->push_back(
        {absl::StrCat("wrong in ", errors.name()),
         absl::StrCat(errors.wrong_elements(), " of ",
                      errors.compared_elements(), " elements, first element ",
                      errors.first_wrong_element(), ": got ", errors.got(),
                      ", expected ", errors.expected())});
  }
}

}  // namespace

std::string Rounded(double value) {
  std::array<char, 32> text;
  const bool whole = std::abs(value) >= 1000 && std::abs(value) < 1e9;
  std::snprintf(text.data(), text.size(), whole ? "%.0f" : "%.3g", value);
  return std::string(text.data());
}

std::vector<Fact> FactsOf(const v1::Outcome& outcome, const KernelWork& work) {
  std::vector<Fact> facts;
  const double ns = MedianOf(outcome.variant_ns());
  if (ns > 0) {
    facts.push_back({"duration", absl::StrCat(Rounded(ns / 1000), " us")});
    AddRates(ns, work, &facts);
  }
  const v1::CodeFacts& code = outcome.code();
  if (code.registers() > 0) {
    facts.push_back(
        {"registers", absl::StrCat(code.registers(), " per thread")});
    facts.push_back({"spills", absl::StrCat(code.spill_bytes(), " bytes")});
    facts.push_back({"static shared memory",
                     absl::StrCat(code.static_shared_bytes(), " bytes")});
  }
  if (code.occupancy() > 0) {
    facts.push_back(
        {"occupancy", absl::StrCat(Rounded(100 * code.occupancy()), " %")});
  }
  AddErrors(outcome, &facts);
  return facts;
}

std::string DescribeOutcome(v1::OutcomeKind kind) {
  switch (kind) {
    case v1::OUTCOME_KIND_OK:
      return "compiles and computes the same";
    case v1::OUTCOME_KIND_COMPILE_ERROR:
      return "does not compile";
    case v1::OUTCOME_KIND_INVALID_LAUNCH:
      return "cannot be launched as recorded";
    case v1::OUTCOME_KIND_WRONG_RESULT:
      return "computes something else";
    case v1::OUTCOME_KIND_REJECTED:
      return "was rejected by a check";
    case v1::OUTCOME_KIND_TIMEOUT:
      return "did not end in time";
    case v1::OUTCOME_KIND_DEVICE_FAULT:
      return "made the device fault";
    default:
      return "was not evaluated";
  }
}

}  // namespace reprise::evolution
