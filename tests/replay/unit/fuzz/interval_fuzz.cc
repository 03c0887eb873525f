// The interval decoder takes any bytes; the first eight are the limit.
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "replay/base/check.h"
#include "replay/unit/interval_set.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace reprise;
  uint64_t limit = 0;
  if (size < sizeof(limit)) return 0;
  std::memcpy(&limit, data, sizeof(limit));
  const std::string_view bytes(
      reinterpret_cast<const char*>(data) + sizeof(limit),
      size - sizeof(limit));
  const absl::StatusOr<IntervalSet> set = IntervalSet::Decode(bytes, limit);
  if (!set.ok()) return 0;
  // Accepted means canonical: sorted, disjoint, inside, and encoded alike.
  uint64_t end = 0;
  uint64_t sum = 0;
  for (const Interval& interval : set->intervals()) {
    CHECK(interval.begin < interval.end && interval.end <= limit);
    CHECK(interval.begin > end || (interval.begin == 0 && end == 0));
    CHECK(set->Contains(interval.begin) && set->Contains(interval.end - 1));
    end = interval.end;
    sum += interval.end - interval.begin;
  }
  CHECK(set->bytes() == sum);
  CHECK(set->Encode() == bytes);
  CHECK(bytes.size() <= limit || bytes.size() == limit + 1);
  CHECK(set->Subtract(*set).empty());
  CHECK(set->Union(*set) == *set && set->Intersect(*set) == *set);
  return 0;
}
