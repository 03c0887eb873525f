#include "replay/recorder/cc/device_images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "replay/base/file_util.h"
#include "tests/replay/recorder/cc/elf_builder.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::MakeElf;
using testing::MakeFatbin;
using testing::MakeFatbinEntry;
using testing::MakeOffloadBinary;

absl::StatusOr<std::vector<DeviceImage>> Find(const std::string& file,
                                              const std::string& path = "") {
  static std::deque<std::string> storage;
  return FindDeviceImages(file, path, &storage);
}

std::string ArchiveMember(const std::string& name, const std::string& content,
                          bool stored = true) {
  char header[61];
  std::snprintf(header, sizeof(header), "%-16s%-12s%-6s%-6s%-8s%-10zu`\n",
                name.c_str(), "0", "0", "0", "644", content.size());
  std::string member = header;
  if (!stored) return member;
  member += content;
  if (content.size() % 2 != 0) member += '\n';
  return member;
}

TEST(DeviceImagesTest, FindsEveryFatbinOfASectionBetweenPadding) {
  const std::string first = MakeFatbin("one");
  const std::string second = MakeFatbin("another one");
  const std::string file =
      MakeElf({{".text", "code"},
               {".nv_fatbin", first + std::string(5, '\0') + second + '\0'}});
  const auto images = Find(file);
  ASSERT_TRUE(images.ok()) << images.status();
  ASSERT_EQ(images->size(), 2u);
  EXPECT_EQ((*images)[0].bytes, first);
  EXPECT_EQ((*images)[1].bytes, second);
  EXPECT_EQ((*images)[1].Digest(), ImageDigest(second));
  EXPECT_EQ((*images)[0].Digest().size(), 64u);
}

TEST(DeviceImagesTest, TellsKindsApart) {
  const std::string file =
      MakeElf({{"__nv_relfatbin", MakeFatbin("r")},
               {".nv_fatbin", MakeFatbin("f")},
               {".llvm.offloading", MakeOffloadBinary("o")}});
  const auto images = Find(file);
  ASSERT_TRUE(images.ok()) << images.status();
  std::vector<ImageKind> kinds;
  for (const DeviceImage& image : *images) kinds.push_back(image.kind);
  EXPECT_THAT(kinds,
              ElementsAre(ImageKind::kRelocatableFatbin, ImageKind::kFatbin,
                          ImageKind::kOffloadBinary));
}

TEST(DeviceImagesTest, AFileWithoutDeviceCodeHasNone) {
  const auto images = Find(MakeElf({{".text", "code"}}));
  ASSERT_TRUE(images.ok()) << images.status();
  EXPECT_THAT(*images, IsEmpty());
}

TEST(DeviceImagesTest, ReadsTheMembersOfAnArchive) {
  const std::string object = MakeElf({{".nv_fatbin", MakeFatbin("x")}});
  const std::string archive = "!<arch>\n" + ArchiveMember("/", "index!") +
                              ArchiveMember("a.txt/", "odd") +
                              ArchiveMember("a.o/", object);
  const auto images = Find(archive);
  ASSERT_TRUE(images.ok()) << images.status();
  ASSERT_EQ(images->size(), 1u);
  EXPECT_EQ((*images)[0].bytes, MakeFatbin("x"));
}

TEST(DeviceImagesTest, ReadsTheFilesOfAThinArchive) {
  auto directory = TemporaryDirectory::Create("device-images");
  ASSERT_TRUE(directory.ok());
  const std::string name = "an_object_with_a_long_name.o";
  const std::string object = MakeElf({{".nv_fatbin", MakeFatbin("thin")}});
  ASSERT_TRUE(WriteFileAtomically(directory->path() + "/" + name, object).ok());
  const std::string archive =
      "!<thin>\n" + ArchiveMember("//", name + "/\ngone.o/\n") +
      ArchiveMember("/0", object, false) + ArchiveMember("/30", "gone", false);
  const auto images = Find(archive, directory->path() + "/lib.a");
  ASSERT_TRUE(images.ok()) << images.status();
  ASSERT_EQ(images->size(), 1u);
  EXPECT_EQ((*images)[0].bytes, MakeFatbin("thin"));
}

TEST(DeviceImagesTest, RefusesWhatIsCutOff) {
  const std::string file = MakeElf({{".nv_fatbin", MakeFatbin("payload")}});
  for (size_t size : {size_t{0}, size_t{3}, size_t{40}, file.size() - 1}) {
    EXPECT_EQ(Find(file.substr(0, size)).status().code(),
              absl::StatusCode::kInvalidArgument)
        << size;
  }
  std::string fatbin = MakeFatbin("payload");
  fatbin.pop_back();
  EXPECT_THAT(
      std::string(Find(MakeElf({{".nv_fatbin", fatbin}})).status().message()),
      HasSubstr("cut off"));
  EXPECT_FALSE(Find(MakeElf({{".llvm.offloading", "garbage garbage"}})).ok());
  EXPECT_FALSE(Find("!<arch>\n" + ArchiveMember("a.o/", "xxxx", false)).ok());
}

TEST(DeviceImagesTest, RefusesSectionsOutsideTheFile) {
  std::string file = MakeElf({{".nv_fatbin", MakeFatbin("payload")}});
  Elf64_Ehdr header;
  std::memcpy(&header, file.data(), sizeof(header));
  Elf64_Shdr section;
  char* at = file.data() + header.e_shoff + sizeof(section);
  std::memcpy(&section, at, sizeof(section));
  section.sh_size = ~uint64_t{0};
  std::memcpy(at, &section, sizeof(section));
  EXPECT_THAT(std::string(Find(file).status().message()),
              HasSubstr("outside the file"));
}

TEST(UnitTagTest, IsWhatCompilersAppend) {
  EXPECT_EQ(
      FindUnitTag(MakeElf(
          {{"__nv_module_id", std::string("_a98b07c9_4_a_cu_main\0", 22)}})),
      "a98b07c9_4_a_cu_main");
  EXPECT_EQ(
      FindUnitTag(MakeElf(
          {{".llvm.rodata.offloading",
            "_Z1kPi _ZL1s__intern__short _ZL1s__static__0123456789abcdef"}})),
      "0123456789abcdef");
  // Clang prints the hash without leading zeros.
  EXPECT_EQ(
      FindUnitTag(MakeElf({{".llvm.rodata.offloading",
                            std::string("_ZL1kPi__intern__d432a96df410ef0\0"
                                        "abc",
                                        36)}})),
      "d432a96df410ef0");
  EXPECT_EQ(FindUnitTag(MakeElf({{".text", "__intern__0123456789abcdef"}})),
            "");
  EXPECT_EQ(FindUnitTag("no object"), "");
}

TEST(FatbinTest, ListsArchitectures) {
  const std::string fatbin =
      MakeFatbin(MakeFatbinEntry(2, 80, 0x11, "sass") +
                 MakeFatbinEntry(2, 90, 0x100011, "more sass") +
                 MakeFatbinEntry(1, 90, 0x8011, "ptx"));
  const auto entries = FatbinEntries(fatbin + "trailing");
  ASSERT_TRUE(entries.ok()) << entries.status();
  ASSERT_EQ(entries->size(), 3u);
  EXPECT_EQ((*entries)[0].architecture, "sm_80");
  EXPECT_EQ((*entries)[1].architecture, "sm_90a");
  EXPECT_FALSE((*entries)[1].ptx);
  EXPECT_EQ((*entries)[2].architecture, "sm_90");
  EXPECT_TRUE((*entries)[2].ptx);
}

TEST(FatbinTest, RefusesForeignBytes) {
  EXPECT_THAT(std::string(FatbinAt("0123456789abcdef").status().message()),
              HasSubstr("got magic"));
  std::string cut = MakeFatbin(MakeFatbinEntry(2, 80, 0, "sass"));
  cut[16 + 8] = 100;  // the entry's payload grows past the end
  EXPECT_FALSE(FatbinEntries(cut).ok());
}

}  // namespace
}  // namespace reprise
