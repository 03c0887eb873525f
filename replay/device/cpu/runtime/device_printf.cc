#include "replay/device/cpu/runtime/device_printf.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace reprise::cpu {
namespace {

// Reads packed arguments one after the other.
class ArgumentReader {
 public:
  explicit ArgumentReader(const char* arguments) : arguments_(arguments) {}

  template <typename T>
  T Next() {
    offset_ = (offset_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    T value;
    std::memcpy(&value, arguments_ + offset_, sizeof(T));
    offset_ += sizeof(T);
    ++count_;
    return value;
  }
  int32_t count() const { return count_; }

 private:
  const char* arguments_;
  size_t offset_ = 0;
  int32_t count_ = 0;
};

template <typename T>
void Print(std::string* out, const std::string& specification, T value) {
  const int size = std::snprintf(nullptr, 0, specification.c_str(), value);
  if (size <= 0) return;
  const size_t old = out->size();
  out->resize(old + size + 1);
  std::snprintf(out->data() + old, size + 1, specification.c_str(), value);
  out->resize(old + size);
}

struct Specification {
  std::string text = "%";  // flags, width and precision, as given
  int long_count = 0;
  bool is_size = false;  // z, t, j
  char conversion = 0;
};

// `at` stands behind the '%'; returns where the specification ends.
const char* ParseSpecification(const char* at, ArgumentReader& arguments,
                               Specification* out) {
  while (*at != 0 && std::strchr("-+ #0123456789.*", *at) != nullptr) {
    if (*at == '*') {
      out->text += std::to_string(arguments.Next<int32_t>());
    } else {
      out->text += *at;
    }
    ++at;
  }
  while (*at != 0 && std::strchr("hlLqjzt", *at) != nullptr) {
    if (*at == 'l') ++out->long_count;
    if (*at == 'q') out->long_count = 2;
    if (*at == 'j' || *at == 'z' || *at == 't') out->is_size = true;
    if (*at == 'h') out->text += 'h';
    ++at;
  }
  out->conversion = *at;
  return *at == 0 ? at : at + 1;
}

void PrintInteger(std::string* out, const Specification& specification,
                  ArgumentReader& arguments) {
  if (specification.long_count > 0 || specification.is_size) {
    Print(out, specification.text + "ll" + specification.conversion,
          static_cast<long long>(arguments.Next<int64_t>()));
  } else {
    Print(out, specification.text + specification.conversion,
          arguments.Next<int32_t>());
  }
}

}  // namespace

std::string FormatDevicePrintf(const char* format, const char* arguments,
                               int32_t* count) {
  std::string out;
  ArgumentReader reader(arguments);
  const char* at = format;
  while (*at != 0) {
    const char* percent = std::strchr(at, '%');
    if (percent == nullptr) {
      out += at;
      break;
    }
    out.append(at, percent);
    Specification specification;
    const char* next = ParseSpecification(percent + 1, reader, &specification);
    switch (specification.conversion) {
      case '%':
        out += '%';
        break;
      case 'd':
      case 'i':
      case 'u':
      case 'o':
      case 'x':
      case 'X':
      case 'c':
        PrintInteger(&out, specification, reader);
        break;
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
      case 'a':
      case 'A':
        Print(&out, specification.text + specification.conversion,
              reader.Next<double>());
        break;
      case 's': {
        const char* text = reader.Next<const char*>();
        Print(&out, specification.text + 's',
              text != nullptr ? text : "(null)");
        break;
      }
      case 'p':
        Print(&out, specification.text + 'p', reader.Next<const void*>());
        break;
      default:  // not one of CUDA's: printed as it stands
        out.append(percent, next);
    }
    at = next;
  }
  *count = reader.count();
  return out;
}

void PrintfBuffer::Append(uint64_t block, std::string text) {
  if (bytes_ >= kPrintfLimitBytes) return;
  bytes_ += text.size();
  if (!entries_.empty() && entries_.back().block == block) {
    entries_.back().text += text;
  } else {
    entries_.push_back({block, std::move(text)});
  }
}

void PrintfBuffer::Clear() {
  entries_.clear();
  bytes_ = 0;
}

std::string PrintfBuffer::Merge(const std::vector<PrintfBuffer*>& buffers,
                                size_t limit) {
  std::vector<const Entry*> entries;
  for (const PrintfBuffer* buffer : buffers) {
    for (const Entry& entry : buffer->entries_) entries.push_back(&entry);
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry* a, const Entry* b) { return a->block < b->block; });
  std::string out;
  for (const Entry* entry : entries) {
    out.append(entry->text, 0, limit - out.size());
    if (out.size() >= limit) break;
  }
  return out;
}

}  // namespace reprise::cpu
