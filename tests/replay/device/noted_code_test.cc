// What instrumented cubins will note, without a GPU: their IR, notes and all,
// runs on the cpu device, and must see what the cpu device's own instrumented
// build sees.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IRReader/IRReader.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>

#include <functional>
#include <map>
#include <set>

#include "replay/base/file_util.h"
#include "replay/base/status_macros.h"
#include "replay/compiler/codegen.h"
#include "replay/compiler/codegen_options.h"
#include "replay/compiler/note_accesses.h"
#include "replay/compiler/pipeline.h"
#include "replay/device/cuda/access_notes.h"
#include "tests/replay/device/device_test_util.h"
#include "tests/replay/device/host_compiler.h"

namespace reprise {
namespace {

using cuda::AccessNotes;
using cuda::NotedRange;
using ::testing::IsEmpty;
using Addresses = std::vector<uint64_t>;

constexpr char kNotes[] = "access_notes";  // as RenameOwn leaves it

// The cpu device keeps "__reprise_" for itself, and knows no parameter space.
void RenameOwn(llvm::Module& module) {
  llvm::Function* test = module.getFunction("__reprise_note_is_parameter");
  test->deleteBody();
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(module.getContext(), "", test));
  b.CreateRet(b.getFalse());
  test->setLinkage(llvm::GlobalValue::InternalLinkage);
  for (llvm::GlobalValue& value : module.global_values()) {
    llvm::StringRef name = value.getName();
    if (name.consume_front("__reprise_")) value.setName(name.str());
  }
}

absl::StatusOr<v1::CompileReply> CompileNoted(const std::string& kernels) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic error;
  const auto module = llvm::parseIRFile(KernelBitcode(kernels), error, context);
  if (module == nullptr) return absl::NotFoundError(error.getMessage().str());
  ASSIGN_OR_RETURN(const auto machine,
                   CreateGpuTargetMachine("sm_90", *module, true));
  ApplyCodegenOptions({}, {}, *module);
  RETURN_IF_ERROR(
      RunPipeline(kPipelineBeforeNotes, *machine, nullptr, false, *module));
  ASSIGN_OR_RETURN(const auto not_noted, NoteAccesses(*module));
  EXPECT_THAT(not_noted, IsEmpty());
  RenameOwn(*module);
  EXPECT_EQ(VerifierErrors(*module), "");
  ASSIGN_OR_RETURN(const TemporaryDirectory directory,
                   TemporaryDirectory::Create("noted-code"));
  const std::string path = directory.path() + "/noted.bc";
  std::string bitcode;
  llvm::raw_string_ostream stream(bitcode);
  llvm::WriteBitcodeToFile(*module, stream);
  RETURN_IF_ERROR(WriteFileAtomically(path, stream.str()));
  return CompileForHost(path, {});
}

// Offsets into a stretch of memory, and the types of its pages.
struct Seen {
  std::set<uint64_t> reads, writes;
  std::map<uint64_t, int> types;  // by page; pages without one are left out
};

// Two machines with the same buffers, one for each build.
class NotedCodeTest : public ::testing::Test {
 protected:
  void Load(const std::string& kernels) {
    LoweringOptions options;
    options.instrument = true;
    absl::Status status = machines_[0].Load(kernels, options);
    ASSERT_TRUE(status.ok()) << status;
    static auto& compiled =
        *new std::map<std::string, absl::StatusOr<v1::CompileReply>>;
    if (compiled.count(kernels) == 0)
      compiled.emplace(kernels, CompileNoted(kernels));
    const auto& code = compiled.at(kernels);
    ASSERT_TRUE(code.ok()) << code.status();
    status = machines_[1].LoadCode(*code, /*instrumented=*/false);
    ASSERT_TRUE(status.ok()) << status;
    for (const v1::ModuleGlobal& global : machines_[0].code().globals()) {
      AddRange(machines_[0].symbol(global.symbol()),
               machines_[1].symbol(global.symbol()), global.bytes());
    }
  }

  // A buffer of its own pages; `offset` moves its begin. Returns its index.
  size_t Buffer(uint64_t bytes, uint64_t offset = 0) {
    Addresses at;
    for (TestMachine& machine : machines_) {
      const uint64_t address = machine.Allocate(bytes + 3 * 4096);
      at.push_back((address + 4095) / 4096 * 4096 + offset);
    }
    AddRange(at[0], at[1], bytes);
    return ranges_.size() - 1;
  }
  template <typename T>
  void Set(size_t buffer, size_t index, const T& value) {
    for (int m : {0, 1}) {
      const uint64_t at = ranges_[buffer].begin[m] + index * sizeof(T);
      std::memcpy(machines_[m].host<char>(at), &value, sizeof(T));
    }
  }
  void WriteAt(int machine, size_t buffer, uint64_t offset, uint64_t value) {
    std::memcpy(machines_[machine].host<char>(At(machine, buffer) + offset),
                &value, sizeof(value));
  }
  uint64_t At(int machine, size_t buffer) const {
    return ranges_[buffer].begin[machine];
  }

  // Runs it on both and compares. `arguments` is asked once for each machine,
  // with the addresses of all buffers there, in order of their creation.
  void Compare(const std::string& kernel, const v1::LaunchConfig& launch,
               const std::function<Arguments(const Addresses&)>& arguments);

  AccessNotes notes_;  // of the last run
  v1::AccessReport expected_;
  bool compare_types_ = true;

 private:
  struct Range {
    uint64_t begin[2];
    uint64_t bytes;
  };
  void AddRange(uint64_t first, uint64_t second, uint64_t bytes) {
    ranges_.push_back({{first, second}, bytes});
  }
  Addresses BufferAddresses(int machine) const;
  uint64_t Prepare();
  Seen Noted(const Range& range, const NotedRange& noted);
  Seen Expected(const Range& range) const;

  TestMachine machines_[2];
  std::vector<Range> ranges_;
};

Addresses NotedCodeTest::BufferAddresses(int machine) const {
  Addresses addresses;
  const size_t globals = machines_[0].code().globals_size();
  for (size_t i = globals; i < ranges_.size(); ++i)
    addresses.push_back(ranges_[i].begin[machine]);
  return addresses;
}

// Fills the notes and fresh planes; returns where the NotedRanges are.
uint64_t NotedCodeTest::Prepare() {
  TestMachine& machine = machines_[1];
  std::vector<NotedRange> table;
  const auto plane = [&machine](uint64_t bytes) {
    const uint64_t at = machine.Allocate(bytes);
    std::memset(machine.host<char>(at), 0, bytes);
    return at;
  };
  for (const Range& range : ranges_) {
    NotedRange noted{range.begin[1], range.begin[1] + range.bytes};
    noted.read = plane(cuda::PlaneWords(noted) * sizeof(uint32_t));
    noted.written = plane(cuda::PlaneWords(noted) * sizeof(uint32_t));
    noted.types = plane(range.bytes / 4096 + 8);
    table.push_back(noted);
  }
  std::sort(table.begin(), table.end(),
            [](const auto& a, const auto& b) { return a.begin < b.begin; });
  AccessNotes notes;
  notes.range_count = table.size();
  notes.ranges = machine.Upload(table);
  *machine.host<AccessNotes>(machine.symbol(kNotes)) = notes;
  return notes.ranges;
}

Seen NotedCodeTest::Noted(const Range& range, const NotedRange& noted) {
  Seen seen;
  TestMachine& machine = machines_[1];
  const auto marked = [&](uint64_t plane) {
    std::set<uint64_t> offsets;
    for (uint64_t i = 0; i < range.bytes; ++i) {
      const uint64_t bit = noted.begin % cuda::kPlaneWordBits + i;
      const uint32_t word =
          machine.host<uint32_t>(plane)[bit / cuda::kPlaneWordBits];
      if ((word >> bit % cuda::kPlaneWordBits & 1) != 0) offsets.insert(i);
    }
    return offsets;
  };
  seen.reads = marked(noted.read);
  seen.writes = marked(noted.written);
  for (uint64_t page = 0; page * 4096 < range.bytes; ++page) {
    const int type = machine.host<uint8_t>(noted.types)[page];
    if (type > 1 && type != cuda::kMixedTypes) seen.types[page] = type - 1;
  }
  return seen;
}

Seen NotedCodeTest::Expected(const Range& range) const {
  Seen seen;
  const auto offsets = [&](const auto& intervals) {
    std::set<uint64_t> set;
    for (const v1::AccessInterval& interval : intervals) {
      for (uint64_t i = 0; i < interval.bytes(); ++i) {
        const uint64_t offset = interval.address() + i - range.begin[0];
        if (offset < range.bytes) set.insert(offset);
      }
    }
    return set;
  };
  seen.reads = offsets(expected_.reads());
  seen.writes = offsets(expected_.writes());
  for (const v1::TypedInterval& interval : expected_.types()) {
    for (uint64_t page = 0; page * 4096 < range.bytes; ++page) {
      const uint64_t at = range.begin[0] + page * 4096;
      if (at >= interval.address() &&
          at < interval.address() + interval.bytes())
        seen.types[page] = interval.element_type();
    }
  }
  return seen;
}

void NotedCodeTest::Compare(
    const std::string& kernel, const v1::LaunchConfig& launch,
    const std::function<Arguments(const Addresses&)>& arguments) {
  SCOPED_TRACE(kernel);
  expected_ =
      machines_[0].Run(kernel, launch, arguments(BufferAddresses(0))).accesses;
  const uint64_t table = Prepare();
  machines_[1].Run(kernel, launch, arguments(BufferAddresses(1)));
  notes_ = *machines_[1].host<AccessNotes>(machines_[1].symbol(kNotes));
  const size_t globals = machines_[0].code().globals_size();
  for (size_t i = 0; i < ranges_.size(); ++i) {
    SCOPED_TRACE(i);
    const Range& range = ranges_[i];
    const NotedRange* noted = machines_[1].host<NotedRange>(table);
    while (noted->begin != range.begin[1]) ++noted;
    const Seen got = Noted(range, *noted);
    const Seen expected = Expected(range);
    EXPECT_EQ(got.reads, expected.reads);
    EXPECT_EQ(got.writes, expected.writes);
    // The cpu device's pages may hold several variables.
    if (i >= globals && compare_types_) EXPECT_EQ(got.types, expected.types);
  }
  EXPECT_EQ(notes_.outside_count, 0u) << std::hex << notes_.first_outside;
  EXPECT_EQ(notes_.bytes_read, expected_.bytes_read());
  EXPECT_EQ(notes_.bytes_written, expected_.bytes_written());
  EXPECT_EQ(notes_.flops, expected_.flops());
}

TEST_F(NotedCodeTest, SimpleKernels) {
  Load("accesses");
  Buffer(16384);
  Buffer(16384);
  Buffer(4096);
  Compare("Axpb", MakeLaunch({4}, {32}), [](const Addresses& a) {
    return Arguments().Add(a[0]).Add(a[1]).Add(2.0f).Add(1.0f).Add(100);
  });
  Compare("Increment", MakeLaunch({10}, {100}), [](const Addresses& a) {
    return Arguments().Add(a[0] + 4).Add(1000);
  });
  Compare("ThroughMemory", MakeLaunch({1}, {8}), [](const Addresses& a) {
    return Arguments().Add(a[0]).Add(a[1]).Add(a[2]);
  });
  Compare("Bytes", MakeLaunch({1}, {3}),
          [](const Addresses& a) { return Arguments().Add(a[0] + 1); });
  for (const char* kernel :
       {"PrivateMemory", "CopyStruct", "Mathematics", "Vectors"}) {
    Compare(kernel, MakeLaunch({1}, {32}),
            [](const Addresses& a) { return Arguments().Add(a[0]).Add(a[1]); });
  }
  Compare("Atomics", MakeLaunch({1}, {4}), [](const Addresses& a) {
    return Arguments().Add(a[0]).Add(a[1]).Add(a[2]);
  });
}

TEST_F(NotedCodeTest, MemoryOfEveryKind) {
  Load("notes");
  const size_t in = Buffer(8192);
  Buffer(8192);
  for (int i = 0; i < 32; ++i) Set(in, i, i);
  Compare("AnyMemory", MakeLaunch({1}, {32}),
          [](const Addresses& a) { return Arguments().Add(a[0]).Add(a[1]); });
  Compare("Constants", MakeLaunch({2}, {16}),
          [](const Addresses& a) { return Arguments().Add(a[0]).Add(a[1]); });
  Compare("AsyncCopy", MakeLaunch({1}, {32}),
          [](const Addresses& a) { return Arguments().Add(a[0]).Add(a[1]); });
}

TEST_F(NotedCodeTest, RecursionAndEarlyReturns) {
  Load("notes");
  const size_t in = Buffer(4096);
  Buffer(4096);
  for (int i = 0; i < 200; ++i) Set(in, i, i % 11 == 7 ? -1.0f : 1.0f);
  Compare("Recursive", MakeLaunch({2}, {3}),
          [](const Addresses& a) { return Arguments().Add(a[1]).Add(5); });
  Compare("EarlyReturns", MakeLaunch({3}, {64}), [](const Addresses& a) {
    return Arguments().Add(a[0]).Add(a[1]).Add(150);
  });
}

TEST_F(NotedCodeTest, CopiesAndStructs) {
  Load("notes");
  Buffer(4096);
  Buffer(4096);
  struct Big {
    float values[12];
    int id;
  };
  Compare("Structs", MakeLaunch({1}, {5}), [](const Addresses& a) {
    return Arguments().Add(a[0]).Add(a[1]).Add(Big{});
  });
  for (int bytes : {0, 1, 13, 48}) {
    Compare("Copies", MakeLaunch({1}, {9}), [&](const Addresses& a) {
      return Arguments().Add(a[0] + 3).Add(a[1]).Add(bytes);
    });
  }
  Compare("Triples", MakeLaunch({2}, {16}),
          [](const Addresses& a) { return Arguments().Add(a[0]).Add(a[1]); });
}

TEST_F(NotedCodeTest, BarriersOrderReadsAndWrites) {
  Load("notes");
  Buffer(1024);
  Buffer(1024);
  Compare("Exchange", MakeLaunch({1}, {32}),
          [](const Addresses& a) { return Arguments().Add(a[0]).Add(a[1]); });
}

TEST_F(NotedCodeTest, Atomics) {
  Load("notes");
  Buffer(1024);
  Buffer(1024);
  Buffer(1024);
  Compare("AllAtomics", MakeLaunch({1}, {32}), [](const Addresses& a) {
    return Arguments().Add(a[0]).Add(a[1]).Add(a[2]);
  });
}

TEST_F(NotedCodeTest, WidthsAndRangesThatBeginAnywhere) {
  Load("notes");
  Buffer(1024);
  Buffer(1024, 2);
  Buffer(1024, 1);
  Buffer(1024, 8);
  Compare("Widths", MakeLaunch({1}, {32}), [](const Addresses& a) {
    return Arguments().Add(a[0]).Add(a[1]).Add(a[2]).Add(a[3]);
  });
}

TEST_F(NotedCodeTest, InlinePtx) {
  Load("notes");
  Buffer(1024);
  Buffer(1024);
  compare_types_ = false;  // the cpu device sees integers in inline PTX
  Compare("InlinePtx", MakeLaunch({1}, {32}),
          [](const Addresses& a) { return Arguments().Add(a[0]).Add(a[1]); });
}

TEST_F(NotedCodeTest, PointersFromMemory) {
  Load("notes");
  const size_t heads = Buffer(256);
  const size_t nodes = Buffer(1024);
  Buffer(256);
  // Machines have other addresses: lists are made for each.
  for (uint64_t i = 0; i < 8; ++i) {
    for (int m : {0, 1}) {
      const uint64_t next = i % 4 == 3 ? 0 : At(m, nodes) + 16 * (i + 1);
      WriteAt(m, heads, 8 * i, At(m, nodes) + 16 * i);
      WriteAt(m, nodes, 16 * i, next);
    }
  }
  Compare("Walk", MakeLaunch({1}, {8}),
          [](const Addresses& a) { return Arguments().Add(a[0]).Add(a[2]); });
}

}  // namespace
}  // namespace reprise
