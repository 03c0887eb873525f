// What code does beside computing: what a judge of variants has to know before
// it runs one (docs/guards.md).
//
// An inventory of the recorded code and one of a variant's are taken the same
// way; only what the variant has beyond the recorded code counts against it.
// So a kernel that reads a clock may go on reading it.
//
// Not thread-safe; plain data.
#ifndef REPRISE_REPLAY_COMPILER_CODE_INVENTORY_H_
#define REPRISE_REPLAY_COMPILER_CODE_INVENTORY_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace reprise {

class CodeInventory {
 public:
  // `what` goes on from "the code ...": "reads a clock (%clock64)". `place` is
  // "a.cu:12", or empty where it is not known. The first of a key stays.
  void Add(const std::string& key, const std::string& what,
           const std::string& place);
  // Bytes of tables that the code holds.
  void AddConstantBytes(uint64_t bytes) { constant_bytes_ += bytes; }

  // What this code has that `recorded` has not, one sentence each, and what it
  // lacks that has to stay. Empty: nothing.
  std::vector<std::string> BeyondOf(const CodeInventory& recorded) const;

 private:
  struct Use {
    std::string what;
    std::string place;
  };
  std::map<std::string, Use> uses_;
  uint64_t constant_bytes_ = 0;
};

// Tables that a variant may add, in all. Results of a launch that are kept in
// the code need more, unless they are few (docs/guards.md).
inline constexpr uint64_t kMostNewConstantBytes = 64 << 10;

// Keys of what several front ends find.
inline constexpr char kPrintfKey[] = "function vprintf";

// A call of a function that the code does not define, other than an intrinsic:
// of those that the device or its executor would supply.
void AddUndefinedFunction(const std::string& name, const std::string& place,
                          CodeInventory& inventory);

// A device variable that a launch can write and the next one read.
void AddWritableVariable(const std::string& name, const std::string& place,
                         CodeInventory& inventory);

// Inline PTX: instructions outside the list of harmless ones, special
// registers, directives, cache control. `place` as for Add.
void AddInlinePtx(std::string_view text, const std::string& place,
                  CodeInventory& inventory);

// A whole PTX text as NVIDIA's compilers write it. It names no lines.
void AddPtxText(const std::string& ptx, CodeInventory& inventory);

// Lines of an edited file that include something by an absolute path or above
// its own directory, and that the recorded text does not have: for compilers
// that do not tell what they read.
std::vector<std::string> SuspectIncludes(const std::string& path,
                                         std::string_view recorded,
                                         std::string_view edited);

}  // namespace reprise

#endif  // REPRISE_REPLAY_COMPILER_CODE_INVENTORY_H_
