// Units as text for a terminal. Thread-safe.
#ifndef REPRISE_REPLAY_UNIT_DESCRIBE_H_
#define REPRISE_REPLAY_UNIT_DESCRIBE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "replay/unit/unit_store.h"
#include "reprise/v1/unit.pb.h"

namespace reprise {

// "512 B", "1.5 KiB", "10.0 GiB".
std::string FormatBytes(uint64_t bytes);

// The demangled name, else the symbol.
std::string KernelName(const v1::Kernel& kernel);

uint64_t MemoryBytes(const v1::Unit& unit);

// What a person calls a range: a variable's symbol, the argument that points
// into it, else its address.
std::string RangeName(const v1::Unit& unit, const v1::MemoryRange& range);

// Bytes of chunks that are zero and not stored.
uint64_t ZeroBytes(const v1::Blob& blob);

// Everything a person wants to know of a unit, several lines. Reads the read
// and write sets from the store; a set that cannot be read is shown as such.
std::string DescribeUnit(const UnitReader& unit);

// One line per unit under a heading; a broken unit's line is its error.
std::string UnitTable(const std::vector<UnitListing>& listings);

}  // namespace reprise

#endif  // REPRISE_REPLAY_UNIT_DESCRIBE_H_
