// reprise units, reprise inspect: what was recorded.
#include <cstdio>

#include "absl/strings/str_format.h"
#include "replay/base/status_macros.h"
#include "replay/engine/launch_geometry.h"
#include "replay/unit/describe.h"
#include "services/cli/context.h"
#include "services/common/terminal.h"

namespace reprise {
namespace {

struct UnitsOptions {
  std::string remove;
  bool verify = false;
  bool collect_garbage = false;
};

uint64_t MemoryBytes(const v1::Unit& unit) {
  uint64_t bytes = 0;
  for (const v1::MemoryRange& range : unit.memory()) bytes += range.bytes();
  return bytes;
}

nlohmann::ordered_json ListingJson(const std::vector<UnitListing>& listings) {
  nlohmann::ordered_json units = nlohmann::ordered_json::array();
  for (const UnitListing& listing : listings) {
    nlohmann::ordered_json unit = {{"id", listing.id}};
    if (!listing.status.ok()) {
      unit["error"] = std::string(listing.status.message());
    } else {
      const v1::Unit& manifest = listing.manifest;
      unit["kernel"] = manifest.kernel().display_name();
      unit["symbol"] = manifest.kernel().symbol();
      unit["architecture"] = manifest.architecture();
      unit["launch"] = DescribeLaunch(manifest.launch());
      unit["memory_bytes"] = MemoryBytes(manifest);
      unit["occurrence"] = manifest.provenance().occurrence();
      unit["occurrence_count"] = manifest.provenance().occurrence_count();
      unit["recorded_ms"] = manifest.provenance().duration_ms();
      unit["recorded_on"] = manifest.provenance().device();
    }
    units.push_back(unit);
  }
  return {{"schema", "reprise.units/1"}, {"units", units}};
}

void PrintListing(const std::vector<UnitListing>& listings) {
  size_t width = 4;
  for (const UnitListing& listing : listings)
    width = std::max(width, listing.id.size());
  std::printf("%-*s  %-10s  %-8s  %-9s  %s\n", static_cast<int>(width), "unit",
              "memory", "launch #", "recorded", "launch");
  for (const UnitListing& listing : listings) {
    if (!listing.status.ok()) {
      std::printf("%-*s  unreadable: %s\n", static_cast<int>(width),
                  listing.id.c_str(),
                  std::string(listing.status.message()).c_str());
      continue;
    }
    const v1::Unit& unit = listing.manifest;
    std::printf(
        "%-*s  %-10s  %-8s  %-9s  %s\n", static_cast<int>(width),
        listing.id.c_str(),
        FormatBytes(static_cast<double>(MemoryBytes(unit))).c_str(),
        absl::StrFormat("%d/%d", unit.provenance().occurrence() + 1,
                        unit.provenance().occurrence_count())
            .c_str(),
        absl::StrFormat("%.3g ms", unit.provenance().duration_ms()).c_str(),
        DescribeLaunch(unit.launch()).c_str());
  }
}

absl::Status VerifyAll(const UnitStore& store,
                       const std::vector<UnitListing>& listings) {
  int broken = 0;
  for (const UnitListing& listing : listings) {
    absl::Status status = listing.status;
    if (status.ok()) {
      ASSIGN_OR_RETURN(const UnitReader unit, store.Open(listing.id));
      status = store.Verify(unit);
    }
    std::printf("%s  %s\n", listing.id.c_str(),
                status.ok() ? "whole" : std::string(status.message()).c_str());
    broken += !status.ok();
  }
  if (broken == 0) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrFormat("%d of %d units are damaged", broken, listings.size()));
}

absl::Status RunUnits(const UnitsOptions& options, CliContext* context) {
  ASSIGN_OR_RETURN(const std::unique_ptr<UnitStore> store,
                   context->OpenStore(/*create=*/false));
  if (!options.remove.empty()) {
    ASSIGN_OR_RETURN(const UnitReader unit, store->Open(options.remove));
    return store->Remove(unit.id());
  }
  if (options.collect_garbage) {
    ASSIGN_OR_RETURN(const uint64_t freed, store->CollectGarbage());
    std::printf("freed %s\n", FormatBytes(static_cast<double>(freed)).c_str());
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const std::vector<UnitListing> listings, store->List());
  if (options.verify) return VerifyAll(*store, listings);
  if (context->json) {
    PrintJson(ListingJson(listings));
  } else if (listings.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "the store ", context->settings.Get("store"),
        " is empty; record a unit first: reprise record -- ./application"));
  } else {
    PrintListing(listings);
  }
  return absl::OkStatus();
}

absl::Status RunInspect(const std::string& id, CliContext* context) {
  ASSIGN_OR_RETURN(const UnitReader unit, context->OpenUnit(id));
  if (context->json) {
    ASSIGN_OR_RETURN(const std::string json, UnitJson(unit));
    std::printf("%s\n", json.c_str());
  } else {
    std::printf("%s", DescribeUnit(unit).c_str());
  }
  return absl::OkStatus();
}

}  // namespace

void AddUnitsVerb(CLI::App* app, CliContext* context) {
  CLI::App* verb =
      app->add_subcommand("units", "list, verify and remove recorded units");
  auto options = std::make_shared<UnitsOptions>();
  verb->add_option("--remove", options->remove, "remove this unit");
  verb->add_flag("--verify", options->verify,
                 "read every byte and compare digests");
  verb->add_flag("--gc", options->collect_garbage,
                 "delete chunks that no unit uses");
  AddCommonOptions(verb, context, /*reports=*/true);
  verb->callback([options, context] {
    if (absl::Status status = RunUnits(*options, context); !status.ok())
      context->Fail(status);
  });
}

void AddInspectVerb(CLI::App* app, CliContext* context) {
  CLI::App* verb = app->add_subcommand(
      "inspect",
      "show all of a unit: launch, arguments, memory, source, provenance");
  auto id = std::make_shared<std::string>();
  verb->add_option("unit", *id,
                   "id, or a beginning of it that only one unit has")
      ->required();
  AddCommonOptions(verb, context, /*reports=*/true);
  verb->callback([id, context] {
    if (absl::Status status = RunInspect(*id, context); !status.ok())
      context->Fail(status);
  });
}

}  // namespace reprise
