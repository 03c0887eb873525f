#include "replay/compiler/nvrtc.h"

#include <dlfcn.h>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "replay/compiler/library_text.h"

namespace reprise {
namespace {

// The part of nvrtc.h that is used, so that no toolkit is needed to build.
using Program = void*;
constexpr int kSuccess = 0;

struct Functions {
  int (*create)(Program*, const char*, const char*, int, const char* const*,
                const char* const*);
  int (*destroy)(Program*);
  int (*add_name)(Program, const char*);
  int (*compile)(Program, int, const char* const*);
  int (*get_ptx_size)(Program, size_t*);
  int (*get_ptx)(Program, char*);
  int (*get_log_size)(Program, size_t*);
  int (*get_log)(Program, char*);
};

template <typename Function>
bool Find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

bool FindAll(void* library, Functions& f) {
  return Find(library, "nvrtcCreateProgram", f.create) &&
         Find(library, "nvrtcDestroyProgram", f.destroy) &&
         Find(library, "nvrtcAddNameExpression", f.add_name) &&
         Find(library, "nvrtcCompileProgram", f.compile) &&
         Find(library, "nvrtcGetPTXSize", f.get_ptx_size) &&
         Find(library, "nvrtcGetPTX", f.get_ptx) &&
         Find(library, "nvrtcGetProgramLogSize", f.get_log_size) &&
         Find(library, "nvrtcGetProgramLog", f.get_log);
}

class NvrtcImpl : public Nvrtc {
 public:
  explicit NvrtcImpl(const Functions& functions) : f_(functions) {}

  absl::StatusOr<std::string> CompileToPtx(const NvrtcSource& source) override {
    std::vector<const char*> names, texts, options;
    for (const auto& [name, text] : source.headers) {
      names.push_back(name.c_str());
      texts.push_back(text.c_str());
    }
    for (const std::string& option : source.options)
      options.push_back(option.c_str());
    Program program = nullptr;
    int result =
        f_.create(&program, source.text.c_str(), source.name.c_str(),
                  static_cast<int>(names.size()), texts.data(), names.data());
    if (result != kSuccess)
      return absl::UnavailableError(
          absl::StrCat("nvrtcCreateProgram: error ", result));
    absl::Cleanup destroyer = [&] { f_.destroy(&program); };
    for (const std::string& name : source.name_expressions)
      f_.add_name(program, name.c_str());
    result =
        f_.compile(program, static_cast<int>(options.size()), options.data());
    if (result != kSuccess) {
      return absl::InvalidArgumentError(
          absl::StrCat("NVRTC: error ", result, "\n",
                       ReadLibraryText(program, f_.get_log_size, f_.get_log)));
    }
    return ReadLibraryText(program, f_.get_ptx_size, f_.get_ptx);
  }

 private:
  const Functions f_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Nvrtc>> Nvrtc::Load(
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
      return std::make_unique<NvrtcImpl>(functions);
    absl::StrAppend(&tried, "\n  ", candidate, ": lacks functions of NVRTC");
    dlclose(library);
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "NVRTC was not found; install the CUDA 13 toolkit or name it by "
      "CUDA_HOME. Tried:",
      tried));
}

}  // namespace reprise
