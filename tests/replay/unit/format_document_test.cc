// docs/unit-format.md shows a tiny unit byte by byte: what it shows is what the
// code writes.
#include <cctype>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "replay/unit/unit_store.h"
#include "tests/replay/unit/test_support.h"

namespace reprise {
namespace {

using ::reprise::testing::FilesUnder;

// As `hexdump -C` prints.
std::string HexDump(std::string_view bytes) {
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += 16) {
    const std::string_view row = bytes.substr(at, 16);
    absl::StrAppend(&text, absl::StrFormat("%08x ", at));
    for (size_t i = 0; i < 16; ++i) {
      if (i % 8 == 0) text += " ";
      text += i < row.size()
                  ? absl::StrFormat("%02x ", static_cast<unsigned char>(row[i]))
                  : "   ";
    }
    text += " |";
    for (char c : row)
      text += std::isprint(static_cast<unsigned char>(c)) ? c : '.';
    text += "|\n";
  }
  return text;
}

class FormatDocumentTest : public testing::StoreTest {};

TEST_F(FormatDocumentTest, TheWorkedExampleIsTrue) {
  auto store = OpenStore();
  ASSERT_OK_AND_ASSIGN(const v1::Blob hello, store->chunks().Put("hello"));
  v1::Unit unit;
  unit.mutable_kernel()->set_symbol("k");
  for (v1::Dim3* dim : {unit.mutable_launch()->mutable_grid(),
                        unit.mutable_launch()->mutable_block()}) {
    dim->set_x(1);
    dim->set_y(1);
    dim->set_z(1);
  }
  v1::MemoryRange* range = unit.add_memory();
  range->set_address(0x1000);
  range->set_bytes(5);
  *range->mutable_prologue() = hello;
  ASSERT_OK_AND_ASSIGN(const std::string id, store->Add(unit));

  const char* source = std::getenv("REPRISE_SOURCE_DIR");
  ASSERT_NE(source, nullptr) << "run by ctest, or set REPRISE_SOURCE_DIR";
  ASSERT_OK_AND_ASSIGN(const std::string document,
                       ReadFile(absl::StrCat(source, "/docs/unit-format.md")));
  for (const std::string& path : FilesUnder(root())) {
    const std::string name = path.substr(root().size() + 1);
    EXPECT_TRUE(absl::StrContains(document, name)) << "not named: " << name;
    ASSERT_OK_AND_ASSIGN(const std::string bytes, ReadFile(path));
    const std::string dump = HexDump(bytes);
    EXPECT_TRUE(absl::StrContains(document, dump))
        << "docs/unit-format.md lacks, under " << name << ":\n"
        << dump;
  }
}

}  // namespace
}  // namespace reprise
