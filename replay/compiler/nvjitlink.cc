#include "replay/compiler/nvjitlink.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "replay/base/sha256.h"
#include "replay/base/status_macros.h"
#include "replay/compiler/library_text.h"
#include "replay/compiler/lru_cache.h"

namespace reprise {
namespace {

// The part of nvJitLink.h that is used, so that no toolkit is needed to build.
using Handle = void*;
constexpr int kSuccess = 0;
constexpr int kPtxInput = 2;

constexpr uint64_t kLinkedBytes = 64 << 20;

struct Functions {
  int (*version)(unsigned*, unsigned*);  // null before 12.3
  int (*create)(Handle*, uint32_t, const char**);
  int (*destroy)(Handle*);
  int (*add_data)(Handle, int, const void*, size_t, const char*);
  int (*complete)(Handle);
  int (*get_cubin_size)(Handle, size_t*);
  int (*get_cubin)(Handle, void*);
  int (*get_error_log_size)(Handle, size_t*);
  int (*get_error_log)(Handle, char*);
  int (*get_info_log_size)(Handle, size_t*);
  int (*get_info_log)(Handle, char*);
};

template <typename Function>
bool Find(void* library, const char* name, Function& function) {
  void* symbol = dlsym(library, name);
  for (const char* suffix : {"_13_0", "_12_0"}) {
    if (symbol == nullptr)
      symbol = dlsym(library, absl::StrCat("__", name, suffix).c_str());
  }
  function = reinterpret_cast<Function>(symbol);
  return symbol != nullptr;
}

bool FindAll(void* library, Functions& f) {
  Find(library, "nvJitLinkVersion", f.version);
  return Find(library, "nvJitLinkCreate", f.create) &&
         Find(library, "nvJitLinkDestroy", f.destroy) &&
         Find(library, "nvJitLinkAddData", f.add_data) &&
         Find(library, "nvJitLinkComplete", f.complete) &&
         Find(library, "nvJitLinkGetLinkedCubinSize", f.get_cubin_size) &&
         Find(library, "nvJitLinkGetLinkedCubin", f.get_cubin) &&
         Find(library, "nvJitLinkGetErrorLogSize", f.get_error_log_size) &&
         Find(library, "nvJitLinkGetErrorLog", f.get_error_log) &&
         Find(library, "nvJitLinkGetInfoLogSize", f.get_info_log_size) &&
         Find(library, "nvJitLinkGetInfoLog", f.get_info_log);
}

class NvJitLinkImpl : public NvJitLink {
 public:
  explicit NvJitLinkImpl(const Functions& functions) : f_(functions) {}

  int ptx_version() const override {
    unsigned major = 12;
    unsigned minor = 0;
    if (f_.version != nullptr) f_.version(&major, &minor);
    return PtxVersionOf(major, minor);
  }

  absl::StatusOr<LinkedCubin> Link(
      const std::vector<std::string>& ptx, const std::string& architecture,
      const std::vector<std::string>& options) override {
    std::vector<std::string> words = {absl::StrCat("-arch=", architecture),
                                      "-verbose"};
    words.insert(words.end(), options.begin(), options.end());
    const std::string key = KeyOf(words, ptx);
    if (const auto known = linked_.Find(key)) return *known;
    ASSIGN_OR_RETURN(LinkedCubin linked, LinkAnew(ptx, words));
    linked_.Insert(key, std::make_shared<LinkedCubin>(linked),
                   linked.cubin.size());
    return linked;
  }

 private:
  static std::string KeyOf(const std::vector<std::string>& words,
                           const std::vector<std::string>& ptx) {
    std::string key;
    for (const auto* texts : {&words, &ptx}) {
      for (const std::string& text : *texts)
        absl::StrAppend(&key, text.size(), ":", text);
      absl::StrAppend(&key, ";");
    }
    return Sha256(key);
  }

  absl::StatusOr<LinkedCubin> LinkAnew(const std::vector<std::string>& ptx,
                                       const std::vector<std::string>& words) {
    std::vector<const char*> argv;
    for (const std::string& word : words) argv.push_back(word.c_str());
    Handle handle = nullptr;
    const int created =
        f_.create(&handle, static_cast<uint32_t>(argv.size()), argv.data());
    absl::Cleanup destroyer = [&] {
      if (handle != nullptr) f_.destroy(&handle);
    };
    if (created != kSuccess) {
      return absl::InvalidArgumentError(absl::StrCat(
          "nvJitLink refused its options (error ", created,
          "): ", absl::StrJoin(words, " "), ": ", ErrorLog(handle)));
    }
    int result = kSuccess;
    for (const std::string& text : ptx) {
      if (result == kSuccess)
        result =
            f_.add_data(handle, kPtxInput, text.data(), text.size(), "ptx");
    }
    if (result == kSuccess) result = f_.complete(handle);
    LinkedCubin linked;
    size_t size = 0;
    if (result == kSuccess) result = f_.get_cubin_size(handle, &size);
    linked.cubin.resize(size);
    if (result == kSuccess) result = f_.get_cubin(handle, linked.cubin.data());
    if (result != kSuccess) {
      return absl::InvalidArgumentError(absl::StrCat(
          "nvJitLink failed (error ", result, "): ", ErrorLog(handle)));
    }
    linked.kernels = ParsePtxasLog(
        ReadLibraryText(handle, f_.get_info_log_size, f_.get_info_log));
    return linked;
  }

  std::string ErrorLog(Handle handle) const {
    if (handle == nullptr) return "";
    return ReadLibraryText(handle, f_.get_error_log_size, f_.get_error_log);
  }

  const Functions f_;
  LruCache<LinkedCubin> linked_{kLinkedBytes};
};

// The number in front of `unit` in "Used 16 registers, 256 bytes smem".
uint32_t NumberBefore(absl::string_view line, absl::string_view unit) {
  const size_t at = line.find(unit);
  if (at == absl::string_view::npos) return 0;
  absl::string_view before =
      absl::StripTrailingAsciiWhitespace(line.substr(0, at));
  before = before.substr(before.find_last_not_of("0123456789") + 1);
  uint32_t number = 0;
  return absl::SimpleAtoi(before, &number) ? number : 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<NvJitLink>> NvJitLink::Load(
    const std::vector<std::string>& candidates) {
  std::string tried;
  for (const std::string& candidate : candidates) {
    void* library = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      absl::StrAppend(&tried, "\n  ", dlerror());
      continue;
    }
    Functions functions;
    if (FindAll(library, functions))
      return std::make_unique<NvJitLinkImpl>(functions);
    absl::StrAppend(&tried, "\n  ", candidate,
                    ": lacks functions of nvJitLink");
    dlclose(library);
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "nvJitLink, which makes machine code of PTX, was not found; install the "
      "CUDA toolkit, 12 or 13, or name it by CUDA_HOME. Tried:",
      tried));
}

int PtxVersionOf(unsigned cuda_major, unsigned cuda_minor) {
  if (cuda_major != 12) return cuda_major < 12 ? 70 : 90;
  // 12.5 and 12.6 have the same; there is no 12.7.
  constexpr int kOf12[] = {80, 81, 82, 83, 84, 85, 85, 86, 87, 88};
  return kOf12[std::min<size_t>(cuda_minor, std::size(kOf12) - 1)];
}

std::vector<PtxasKernelReport> ParsePtxasLog(const std::string& log) {
  std::vector<PtxasKernelReport> reports;
  for (absl::string_view line : absl::StrSplit(log, '\n')) {
    const size_t entry = line.find("Compiling entry function '");
    if (entry != absl::string_view::npos) {
      absl::string_view name = line.substr(entry + 26);
      reports.emplace_back().symbol =
          std::string(name.substr(0, name.find('\'')));
      continue;
    }
    if (reports.empty()) continue;
    PtxasKernelReport& report = reports.back();
    if (absl::StrContains(line, "spill stores")) {
      report.stack_bytes = NumberBefore(line, "bytes stack frame");
      report.spill_bytes = NumberBefore(line, "bytes spill stores") +
                           NumberBefore(line, "bytes spill loads");
    } else if (absl::StrContains(line, "Used ")) {
      report.registers = NumberBefore(line, "registers");
      report.shared_bytes = NumberBefore(line, "bytes smem");
    }
  }
  return reports;
}

}  // namespace reprise
