// Tuned code on its way into an application.
#include "replay/recorder/session/tuned_code.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "replay/recorder/driver/protocol.h"
#include "tests/replay/recorder/cc/elf_builder.h"

namespace reprise {
namespace {

namespace wire = driver_wire;
using ::testing::HasSubstr;

struct Variable {
  std::string name;
  bool constant;
};

template <typename T>
void Put(std::string* bytes, size_t at, const T& value) {
  std::memcpy(bytes->data() + at, &value, sizeof(value));
}

// Machine code that declares variables of four bytes.
std::string Cubin(const std::vector<Variable>& variables) {
  std::string names(1, '\0');
  std::string symbols(sizeof(Elf64_Sym), '\0');
  for (const Variable& variable : variables) {
    Elf64_Sym symbol{};
    symbol.st_name = static_cast<uint32_t>(names.size());
    symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
    symbol.st_shndx = variable.constant ? 1 : 2;
    symbol.st_size = 4;
    testing::AppendValue(&symbols, symbol);
    names += variable.name + '\0';
  }
  std::string elf = testing::MakeElf({{".nv.constant3", "12345678"},
                                      {".nv.global", "12345678"},
                                      {".strtab", names},
                                      {".symtab", symbols}});
  Put(&elf, offsetof(Elf64_Ehdr, e_machine), uint16_t{EM_CUDA});
  Elf64_Ehdr header;
  std::memcpy(&header, elf.data(), sizeof(header));
  const size_t table = header.e_shoff + 4 * sizeof(Elf64_Shdr);
  Put(&elf, table + offsetof(Elf64_Shdr, sh_type), uint32_t{SHT_SYMTAB});
  Put(&elf, table + offsetof(Elf64_Shdr, sh_link), uint32_t{3});
  Put(&elf, table + offsetof(Elf64_Shdr, sh_entsize),
      uint64_t{sizeof(Elf64_Sym)});
  return elf;
}

class TunedCodeTest : public ::testing::Test {
 protected:
  TunedCodeTest() {
    kernel_.set_symbol("_Z1kPf");
    kernel_.add_parameter_offsets(0);
    kernel_.add_parameter_bytes(8);
    tuned_.kernel = "_Z1kPf";
    *tuned_.code.add_kernels() = kernel_;
    tuned_.guard.mutable_grid()->set_x(4);
    tuned_.launch.mutable_grid()->set_x(2);
  }

  void Declare(const std::vector<Variable>& state,
               const std::vector<Variable>& literals = {}) {
    std::vector<Variable> all = state;
    all.insert(all.end(), literals.begin(), literals.end());
    tuned_.code.set_code(Cubin(all));
    for (const Variable& variable : state)
      tuned_.code.add_globals()->set_symbol(variable.name);
  }

  // The names behind the message, "|" in the place of NUL.
  std::string Names(const std::set<std::string>& variables) {
    const auto message = TunedCodeMessage(tuned_, kernel_, variables);
    EXPECT_TRUE(message.ok()) << message.status();
    if (!message.ok()) return "";
    wire::Substitute head;
    std::memcpy(static_cast<void*>(&head), message->data(), sizeof(head));
    EXPECT_EQ(head.guard.grid[0], 4u);
    EXPECT_EQ(head.grid[0], 2u);
    EXPECT_EQ(message->size(),
              sizeof(head) + head.name_bytes + head.code_bytes);
    std::string names = message->substr(sizeof(head), head.name_bytes);
    for (char& c : names)
      if (c == '\0') c = '|';
    return names;
  }
  std::string Refusal(const std::set<std::string>& variables) {
    const auto message = TunedCodeMessage(tuned_, kernel_, variables);
    return message.ok() ? "" : std::string(message.status().message());
  }

  v1::CompiledKernelInfo kernel_;
  Substitution tuned_;
};

TEST_F(TunedCodeTest, ConstantsAreNamedAsTheApplicationDoes) {
  Declare({{"a", true}, {"_ZL1b__intern__7", true}, {"fresh", true}});
  EXPECT_EQ(Names({"a", "_ZL1b", "other"}),
            "_Z1kPf|a|a|_ZL1b__intern__7|_ZL1b|");
  // Nothing is known of the application's.
  EXPECT_EQ(Names({}),
            "_Z1kPf|a|a|_ZL1b__intern__7|_ZL1b__intern__7|fresh|fresh|");
}

TEST_F(TunedCodeTest, LiteralsAndTablesAreTheCodesOwn) {
  Declare({}, {{"_$_str", false}, {"$str", false}, {"__const_$_k", true}});
  EXPECT_EQ(Names({"a"}), "_Z1kPf|");
}

TEST_F(TunedCodeTest, VariablesThatKernelsWriteAreRefused) {
  Declare({{"counter", false}});
  EXPECT_THAT(Refusal({"counter"}), HasSubstr("variable of its own (counter)"));
}

TEST_F(TunedCodeTest, VariablesOfInlineAssemblyAreRefused) {
  Declare({}, {{"$__x__70$1", false}});
  EXPECT_THAT(Refusal({}), HasSubstr("variable of its own"));
}

TEST_F(TunedCodeTest, ConstantsThatCannotBeToldApartAreRefused) {
  Declare({{"_ZL1b", true}});
  EXPECT_THAT(Refusal({"_ZL1b__intern__7", "_ZL1b__intern__8"}),
              HasSubstr("several constants b"));
}

TEST_F(TunedCodeTest, OtherKernelsAreRefused) {
  Declare({});
  kernel_.set_parameter_bytes(0, 4);
  EXPECT_THAT(Refusal({}), HasSubstr("other parameters"));
  tuned_.kernel = "_Z1mPf";
  EXPECT_THAT(Refusal({}), HasSubstr("no such kernel"));
}

}  // namespace
}  // namespace reprise
