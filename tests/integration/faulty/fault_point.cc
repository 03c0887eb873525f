// Takes the place of replay/base/fault_point.cc in the program reprise_faulty,
// which is reprise otherwise.
//
// REPRISE_FAULTS="launch:kill:0.01,write:full:0.05" gives each fault of a place
// a probability. Places: compile, compile-reply, launch, channel, write,
// settle. Faults: kill, hang, garble, full. REPRISE_FAULTS_LOG names a file
// that gets a line for each before it happens.
#include "replay/base/fault_point.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace reprise {
namespace {

struct Injection {
  std::string place, fault;
  double probability = 0;
};

std::vector<Injection> ReadInjections() {
  std::vector<Injection> injections;
  const char* text = std::getenv("REPRISE_FAULTS");
  for (const auto word :
       absl::StrSplit(text == nullptr ? "" : text, ',', absl::SkipEmpty())) {
    const std::vector<std::string> parts = absl::StrSplit(word, ':');
    Injection injection;
    if (parts.size() != 3 ||
        !absl::SimpleAtod(parts[2], &injection.probability)) {
      std::fprintf(stderr, "REPRISE_FAULTS: got '%s', expected PLACE:FAULT:P\n",
                   std::string(word).c_str());
      std::abort();
    }
    injection.place = parts[0];
    injection.fault = parts[1];
    injections.push_back(std::move(injection));
  }
  return injections;
}

void Note(const Injection& injection) {
  const char* path = std::getenv("REPRISE_FAULTS_LOG");
  if (path == nullptr) return;
  const std::string line =
      absl::StrCat(injection.place, ":", injection.fault, "\n");
  const int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || write(fd, line.data(), line.size()) < 0) std::abort();
  close(fd);
}

bool Happens(double probability) {
  static std::mutex mutex;
  static std::mt19937_64 random{std::random_device()()};
  const std::lock_guard<std::mutex> lock(mutex);
  return std::uniform_real_distribution<double>()(random) < probability;
}

Fault Meet(const Injection& injection) {
  Note(injection);
  if (injection.fault == "garble") return Fault::kGarbled;
  if (injection.fault == "full") return Fault::kDiskFull;
  if (injection.fault == "kill") raise(SIGKILL);
  for (;;) pause();  // hang
}

}  // namespace

Fault PassFaultPoint(const char* place) {
  static const std::vector<Injection>* const injections =
      new std::vector<Injection>(ReadInjections());
  for (const Injection& injection : *injections) {
    if (injection.place == place && Happens(injection.probability))
      return Meet(injection);
  }
  return Fault::kNone;
}

}  // namespace reprise
