// reprise certs: what servers and clients know each other by beyond one host.
#include <cstdio>

#include "services/cli/context.h"
#include "services/common/certificates.h"

namespace reprise {
namespace {

constexpr char kMade[] =
    "made the certificates of a fleet in %s, valid for %d days\n"
    "  server.pem server.key   for `reprise serve --certs`\n"
    "  client.pem client.key   for who submits code\n"
    "  viewer.pem viewer.key   for who may only look\n"
    "Each goes with ca.pem to the machine that needs it, with mode 0600. Keep "
    "ca.key here: who has it can make\n"
    "certificates of any role.\n";

}  // namespace

void AddCertsVerb(CLI::App* app, CliContext* context) {
  CLI::App* verb = app->add_subcommand(
      "certs",
      "make the certificates that servers and clients of a fleet know each "
      "other by");
  struct Options {
    std::string directory;
    CertificateOptions certificates;
  };
  auto options = std::make_shared<Options>();
  verb->add_option("directory", options->directory,
                   "where to; made with mode 0700 where it is not there. An "
                   "authority that is there is kept")
      ->required();
  verb->add_option("--host", options->certificates.hosts,
                   "name or address that clients reach a server by, besides "
                   "localhost; may be repeated");
  verb->add_option("--days", options->certificates.days,
                   "how long they are valid; the authority ten times as long")
      ->capture_default_str();
  verb->callback([options, context] {
    const absl::Status status =
        MakeCertificates(options->directory, options->certificates);
    if (!status.ok()) return context->Fail(status);
    std::printf(kMade, options->directory.c_str(), options->certificates.days);
  });
}

}  // namespace reprise
