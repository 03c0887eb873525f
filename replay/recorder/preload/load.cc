// When the library is loaded: a program that carries its own copy of the CUDA
// runtime cannot be served, and its recorder wants to know why no launch ever
// comes.
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "replay/recorder/preload/channel.h"
#include "replay/recorder/preload/protocol.h"
#include "replay/recorder/preload/support.h"

namespace reprise::standin {
namespace {

constexpr char kFatbinSection[] = ".nvFatBinSegment";
constexpr char kRuntime[] = "libcudart.so";
constexpr uint64_t kMaxTableBytes = 64 << 20;

bool ReadAt(int fd, uint64_t offset, void* data, size_t size) {
  return pread(fd, data, size, static_cast<off_t>(offset)) ==
         static_cast<ssize_t>(size);
}

// `bytes` bytes of the file and a zero, to be freed; null when they are not
// there.
char* ReadTable(int fd, uint64_t offset, uint64_t bytes) {
  if (bytes > kMaxTableBytes) return nullptr;
  char* table = static_cast<char*>(calloc(1, bytes + 1));
  if (table != nullptr && !ReadAt(fd, offset, table, bytes)) {
    free(table);
    table = nullptr;
  }
  return table;
}

bool NeedsRuntime(int fd, const Elf64_Shdr& dynamic, const Elf64_Shdr& names) {
  char* entries = ReadTable(fd, dynamic.sh_offset, dynamic.sh_size);
  char* texts = ReadTable(fd, names.sh_offset, names.sh_size);
  bool found = false;
  const auto* entry = reinterpret_cast<const Elf64_Dyn*>(entries);
  for (uint64_t i = 0; entries != nullptr && texts != nullptr && !found &&
                       i < dynamic.sh_size / sizeof(Elf64_Dyn);
       ++i) {
    found =
        entry[i].d_tag == DT_NEEDED && entry[i].d_un.d_val < names.sh_size &&
        strncmp(texts + entry[i].d_un.d_val, kRuntime, sizeof(kRuntime) - 1) ==
            0;
  }
  free(entries);
  free(texts);
  return found;
}

// Whether the program has device code and no shared CUDA runtime to run it.
bool HasStaticRuntime(int fd) {
  Elf64_Ehdr header;
  if (!ReadAt(fd, 0, &header, sizeof(header)) ||
      memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_shentsize != sizeof(Elf64_Shdr) ||
      header.e_shstrndx >= header.e_shnum)
    return false;
  char* table = ReadTable(fd, header.e_shoff,
                          uint64_t{header.e_shnum} * sizeof(Elf64_Shdr));
  if (table == nullptr) return false;
  const auto* sections = reinterpret_cast<const Elf64_Shdr*>(table);
  const Elf64_Shdr& strings = sections[header.e_shstrndx];
  char* names = ReadTable(fd, strings.sh_offset, strings.sh_size);
  bool device_code = false;
  bool shared_runtime = false;
  for (uint32_t i = 0; names != nullptr && i < header.e_shnum; ++i) {
    const Elf64_Shdr& section = sections[i];
    if (section.sh_name < strings.sh_size &&
        strcmp(names + section.sh_name, kFatbinSection) == 0)
      device_code = true;
    if (section.sh_type == SHT_DYNAMIC && section.sh_link < header.e_shnum)
      shared_runtime = NeedsRuntime(fd, section, sections[section.sh_link]);
  }
  free(names);
  free(table);
  return device_code && !shared_runtime;
}

__attribute__((constructor)) void Loaded() {
  const char* socket = getenv(wire::kSocketVariable);
  if (socket == nullptr) return;
  const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  const bool is_static = HasStaticRuntime(fd);
  close(fd);
  if (!is_static) return;
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  Channel channel;
  if (length <= 0 || !channel.Connect(socket)) return;
  const Bytes text{path, static_cast<size_t>(length)};
  channel.Send(wire::kStaticRuntime, &text, 1);
  channel.Close();
}

}  // namespace
}  // namespace reprise::standin
