// reprise units, reprise inspect: what was recorded.
#include <cstdio>

#include "absl/strings/str_format.h"
#include "replay/base/status_macros.h"
#include "replay/engine/launch_geometry.h"
#include "replay/unit/describe.h"
#include "replay/unit/unit_json.h"
#include "services/cli/context.h"

namespace reprise {
namespace {

struct UnitsOptions {
  std::string remove;
  bool verify = false;
  bool collect_garbage = false;
};

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
    const absl::StatusOr<UnitReader> unit = store->Open(options.remove);
    // A damaged unit cannot be opened, but by its whole id it can go.
    const std::string id = unit.ok() ? unit->id() : options.remove;
    RETURN_IF_ERROR(store->Remove(id));
    std::printf("removed %s; its chunks go with --gc\n", id.c_str());
    return absl::OkStatus();
  }
  if (options.collect_garbage) {
    ASSIGN_OR_RETURN(const uint64_t freed, store->CollectGarbage());
    std::printf("freed %s\n", FormatBytes(freed).c_str());
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const std::vector<UnitListing> listings, store->List());
  if (options.verify) return VerifyAll(*store, listings);
  if (context->json) {
    PrintJson(
        {{"schema", "reprise.units/1"}, {"units", ListingsToJson(listings)}});
  } else if (listings.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "the store ", context->settings.Get("store"),
        " is empty; record a unit first: reprise record -- ./application"));
  } else {
    std::printf("%s", UnitTable(listings).c_str());
  }
  return absl::OkStatus();
}

absl::Status RunInspect(const std::string& id, CliContext* context) {
  ASSIGN_OR_RETURN(const UnitReader unit, context->OpenUnit(id));
  if (context->json) {
    nlohmann::ordered_json json = {{"schema", "reprise.unit/1"}};
    json.update(UnitToJson(unit.id(), unit.manifest()));
    PrintJson(json);
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
