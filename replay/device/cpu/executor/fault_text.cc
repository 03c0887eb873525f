#include "replay/device/cpu/executor/fault_text.h"

#include "absl/strings/str_cat.h"

namespace reprise::cpu {
namespace {

std::string Hex(uint64_t address) {
  return absl::StrCat("0x", absl::Hex(address));
}

std::string Triple(const uint32_t (&d)[3]) {
  return absl::StrCat("(", d[0], ",", d[1], ",", d[2], ")");
}

// Where the address lies relative to the nearest mapped memory.
std::string Neighbourhood(uint64_t address,
                          const std::vector<v1::MemoryMapping>& mappings) {
  constexpr uint64_t kNear = 1 << 30;
  uint64_t distance = kNear;
  std::string text;
  for (const v1::MemoryMapping& mapping : mappings) {
    const uint64_t end = mapping.address() + mapping.bytes();
    if (address >= mapping.address() && address < end) {
      return absl::StrCat(" inside read-only memory at ",
                          Hex(mapping.address()));
    }
    if (address >= end && address - end < distance) {
      distance = address - end;
      text = absl::StrCat(", ", distance, " bytes behind the memory at ",
                          Hex(mapping.address()), " + ", mapping.bytes());
    } else if (address < mapping.address() &&
               mapping.address() - address < distance) {
      distance = mapping.address() - address;
      text = absl::StrCat(", ", distance, " bytes before the memory at ",
                          Hex(mapping.address()));
    }
  }
  return text;
}

std::string What(const FaultRecord& record,
                 const std::vector<v1::MemoryMapping>& mappings) {
  switch (record.kind) {
    case FaultKind::kMemory: {
      const char* access = record.is_write ? "write" : "read";
      if (record.message[0] != 0) {
        return absl::StrCat("out-of-bounds ", access, " of ", record.message);
      }
      // The processor names no address that is not a canonical one.
      if (record.address == 0) {
        return "access through a null or malformed address";
      }
      return absl::StrCat("out-of-bounds ", access, " at ", Hex(record.address),
                          Neighbourhood(record.address, mappings));
    }
    case FaultKind::kStackOverflow:
      return "stack overflow: more local memory than a thread has";
    case FaultKind::kArithmetic:
      return "integer division by zero or out of range";
    case FaultKind::kIllegal:
      return "illegal instruction (unreachable code was reached)";
    case FaultKind::kReported:
      return record.message;
    case FaultKind::kNone:
      break;
  }
  return "unknown fault";
}

}  // namespace

std::string DescribeFault(const FaultRecord& record,
                          const std::vector<v1::MemoryMapping>& mappings) {
  std::string text = What(record, mappings);
  if (record.has_block)
    absl::StrAppend(&text, ", block ", Triple(record.block));
  if (record.has_thread) {
    absl::StrAppend(&text, ", thread ", Triple(record.thread));
  } else if (record.has_block) {
    absl::StrAppend(&text, ", thread not known (its threads run as one loop)");
  }
  return text;
}

}  // namespace reprise::cpu
