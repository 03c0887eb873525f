// What an application gives the driver as a module.
#include "replay/recorder/driver/image.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace reprise::driver {
namespace {

std::string Fatbin(uint16_t header_bytes, uint64_t payload_bytes) {
  std::string bytes(header_bytes, '\0');
  const uint32_t magic = 0xba55ed50;
  memcpy(bytes.data(), &magic, 4);
  memcpy(bytes.data() + 6, &header_bytes, 2);
  memcpy(bytes.data() + 8, &payload_bytes, 8);
  return bytes + std::string(payload_bytes, 'x');
}

std::string Elf() {
  Elf64_Ehdr header{};
  memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_shoff = sizeof(header);
  header.e_shnum = 3;
  header.e_shentsize = sizeof(Elf64_Shdr);
  Elf64_Shdr sections[3] = {};
  sections[1].sh_type = SHT_PROGBITS;
  sections[1].sh_offset = sizeof(header) + sizeof(sections);
  sections[1].sh_size = 100;
  sections[2].sh_type = SHT_NOBITS;  // takes no room in the file
  sections[2].sh_offset = 5000;
  sections[2].sh_size = 5000;
  std::string bytes(reinterpret_cast<char*>(&header), sizeof(header));
  bytes.append(reinterpret_cast<char*>(sections), sizeof(sections));
  return bytes + std::string(100, 'x');
}

TEST(ImageTest, AFatbinIsAsLongAsItsHeaderSays) {
  const std::string bytes = Fatbin(16, 1000);
  const Image image = FindImage(bytes.data());
  EXPECT_EQ(image.data, bytes.data());
  EXPECT_EQ(image.bytes, bytes.size());
}

TEST(ImageTest, AWrapperLeadsToItsFatbin) {
  const std::string bytes = Fatbin(24, 77);
  const struct {
    uint32_t magic = 0x466243b1;
    uint32_t version = 1;
    const void* image;
    const void* file = nullptr;
  } wrapper{.image = bytes.data()};
  const Image image = FindImage(&wrapper);
  EXPECT_EQ(image.data, bytes.data());
  EXPECT_EQ(image.bytes, bytes.size());
}

TEST(ImageTest, ACubinEndsWithItsLastBytesInTheFile) {
  const std::string bytes = Elf();
  EXPECT_EQ(FindImage(bytes.data()).bytes, bytes.size());
}

TEST(ImageTest, PtxIsText) {
  const char ptx[] = "// made by hand\n.version 8.0\n";
  EXPECT_EQ(FindImage(ptx).bytes, strlen(ptx));
}

TEST(ImageTest, OtherThingsAreNotMeasured) {
  const unsigned char bytes[64] = {0x42, 0x43, 0xc0, 0xde};
  EXPECT_EQ(FindImage(bytes).bytes, 0);
  EXPECT_EQ(FindImage(nullptr).bytes, 0);
  std::string huge = Fatbin(16, 8);
  const uint64_t payload = ~uint64_t{0} - 5;
  memcpy(huge.data() + 8, &payload, 8);
  EXPECT_LT(FindImage(huge.data()).bytes, 64);
}

const char kInTheProgram[] = ".version 8.0 and more text of the program itself";

TEST(ImageTest, TellsTheProgramsOwnBytesFromTheHeaps) {
  EXPECT_TRUE(LiesInLoadedFile(FindImage(kInTheProgram)));
  const std::string copy = kInTheProgram;
  EXPECT_FALSE(LiesInLoadedFile(FindImage(copy.c_str())));
}

}  // namespace
}  // namespace reprise::driver
