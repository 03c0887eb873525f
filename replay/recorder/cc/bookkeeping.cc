#include "replay/recorder/cc/bookkeeping.h"

#include <algorithm>
#include <charconv>
#include <deque>
#include <filesystem>
#include <set>

#include "absl/strings/str_cat.h"
#include "replay/base/log.h"
#include "replay/base/status_macros.h"
#include "replay/recorder/cc/device_images.h"
#include "replay/recorder/cc/mapped_file.h"
#include "replay/recorder/cc/source_closure.h"

namespace reprise {
namespace {

constexpr int kRecordedCapability = 90;

// "sm_90a" -> 90; 0 for what is no architecture.
int Capability(const std::string& architecture) {
  int number = 0;
  const size_t digits = architecture.find_first_of("0123456789");
  if (digits == std::string::npos) return 0;
  std::from_chars(architecture.data() + digits,
                  architecture.data() + architecture.size(), number);
  return number;
}

// Images of one file; the file and the members it names stay mapped.
class ImageFile {
 public:
  static absl::StatusOr<std::unique_ptr<ImageFile>> Read(
      const std::string& path) {
    ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
    std::unique_ptr<ImageFile> read(new ImageFile(std::move(file)));
    ASSIGN_OR_RETURN(read->images_, FindDeviceImages(read->file_.bytes(), path,
                                                     &read->storage_));
    return read;
  }

  const std::vector<DeviceImage>& images() const { return images_; }
  std::string_view bytes() const { return file_.bytes(); }

 private:
  explicit ImageFile(MappedFile file) : file_(std::move(file)) {}

  MappedFile file_;
  std::deque<std::string> storage_;
  std::vector<DeviceImage> images_;
};

struct Digests {
  std::vector<std::string> registered;   // kFatbin
  std::vector<std::string> relocatable;  // the other kinds
};

void Append(const std::vector<DeviceImage>& images, Digests* digests) {
  for (const DeviceImage& image : images) {
    (image.kind == ImageKind::kFatbin ? digests->registered
                                      : digests->relocatable)
        .push_back(image.Digest());
  }
}

// Those of `all` that are not in `known`.
std::vector<std::string> Without(const std::vector<std::string>& all,
                                 const std::vector<std::string>& known) {
  const std::set<std::string> drop(known.begin(), known.end());
  std::vector<std::string> left;
  for (const std::string& digest : all)
    if (!drop.contains(digest)) left.push_back(digest);
  return left;
}

}  // namespace

bool HasCudaSource(const CompilerCommand& command) {
  return std::any_of(command.sources.begin(), command.sources.end(),
                     [](const CommandSource& source) { return source.cuda; });
}

bool IsWorthKeeping(const CompilerCommand& command) {
  return command.kind != CommandKind::kOther &&
         (command.links || HasCudaSource(command));
}

bool HasDeviceCode(const std::string& path) {
  const absl::StatusOr<std::unique_ptr<ImageFile>> file = ImageFile::Read(path);
  return file.ok() && !(*file)->images().empty();
}

std::string ChooseArchitecture(const std::vector<std::string>& architectures) {
  std::string best;
  std::string lowest;
  for (const std::string& written : architectures) {
    const std::string architecture = RealArchitecture(written);
    const int capability = Capability(architecture);
    if (capability == 0) continue;
    if (lowest.empty() || capability < Capability(lowest))
      lowest = architecture;
    // Later, equal ones (PTX beside machine code) do not replace the first.
    if (capability <= kRecordedCapability && capability > Capability(best))
      best = architecture;
  }
  if (!best.empty()) return best;
  return lowest.empty() ? absl::StrCat("sm_", kRecordedCapability) : lowest;
}

v1::TranslationUnit DescribeUnit(const CompilerCommand& command,
                                 const CommandSource& source,
                                 const std::vector<std::string>& argv,
                                 const std::string& directory) {
  v1::TranslationUnit unit;
  for (const std::string& argument : argv) unit.add_argv(argument);
  unit.set_directory(directory);
  std::filesystem::path path(source.path);
  if (path.is_relative()) path = std::filesystem::path(directory) / path;
  unit.set_main_file(path.lexically_normal().string());
  for (const std::string& argument : command.clang_args)
    unit.add_clang_args(argument);
  return unit;
}

Bookkeeping::Bookkeeping(CompilerCommand command, std::vector<std::string> argv,
                         std::string directory, std::string cuda_home,
                         BuildRegistry* registry)
    : command_(std::move(command)),
      argv_(std::move(argv)),
      directory_(std::move(directory)),
      cuda_home_(std::move(cuda_home)),
      architecture_(ChooseArchitecture(command_.architectures)),
      registry_(registry) {}

std::string Bookkeeping::Absolute(const std::string& path) const {
  const std::filesystem::path written(path);
  return written.is_absolute()
             ? path
             : (std::filesystem::path(directory_) / written).string();
}

absl::Status Bookkeeping::KeepSources() {
  for (const CommandSource& source : command_.sources) {
    if (!source.cuda) continue;
    v1::TranslationUnit unit =
        DescribeUnit(command_, source, argv_, directory_);
    RETURN_IF_ERROR(KeepSourceClosure(architecture_, cuda_home_,
                                      registry_->chunks(), &unit));
    ASSIGN_OR_RETURN(std::string id, registry_->AddUnit(unit));
    kept_.push_back({source, {std::move(id), architecture_, ""}});
  }
  return absl::OkStatus();
}

absl::Status Bookkeeping::KeepResults() {
  if (command_.links) return KeepLink();
  for (const Kept& kept : kept_) RETURN_IF_ERROR(KeepObject(kept));
  return absl::OkStatus();
}

absl::Status Bookkeeping::KeepObject(const Kept& kept) {
  if (kept.source.output.empty()) return absl::OkStatus();
  const absl::StatusOr<std::unique_ptr<ImageFile>> object =
      ImageFile::Read(Absolute(kept.source.output));
  // PTX, a cubin's text, /dev/null: outputs that no program is linked from.
  if (absl::IsInvalidArgument(object.status())) return absl::OkStatus();
  RETURN_IF_ERROR(object.status());
  UnitUse use = kept.use;
  if (command_.relocatable_device_code)
    use.tag = FindUnitTag((*object)->bytes());
  for (const DeviceImage& image : (*object)->images())
    RETURN_IF_ERROR(registry_->AddImage(image.Digest(), use));
  return absl::OkStatus();
}

absl::Status Bookkeeping::KeepLink() {
  if (command_.output.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::unique_ptr<ImageFile> program,
                   ImageFile::Read(Absolute(command_.output)));
  Digests made;
  Append(program->images(), &made);
  if (made.registered.empty()) return absl::OkStatus();

  Digests inputs;
  for (const std::string& path : command_.link_inputs) {
    const absl::StatusOr<std::unique_ptr<ImageFile>> input =
        ImageFile::Read(Absolute(path));
    if (input.ok())
      Append((*input)->images(), &inputs);  // else a linker script
  }
  std::vector<std::string> fresh = Without(made.registered, inputs.registered);
  if (!command_.relocatable_device_code && fresh.size() == kept_.size()) {
    // Sources that were compiled and linked at once: their code lies in the
    // program in their order.
    for (size_t i = 0; i < fresh.size(); ++i)
      RETURN_IF_ERROR(registry_->AddImage(fresh[i], kept_[i].use));
    return absl::OkStatus();
  }
  std::vector<LinkInput> links;
  for (const std::string& digest : inputs.relocatable)
    links.push_back({digest, {}});
  for (const Kept& kept : kept_) links.push_back({"", kept.use});
  if (links.empty()) return absl::OkStatus();
  for (const std::string& digest : fresh)
    RETURN_IF_ERROR(registry_->AddLink(digest, links));
  return absl::OkStatus();
}

}  // namespace reprise
