// Stands in for `reprise record`: answers one application's library as a test
// says and keeps what it heard. The server runs on threads of its own; what it
// heard may be read once the application has ended.
#ifndef REPRISE_TESTS_REPLAY_RECORDER_DRIVER_SCRIPTED_PARENT_H_
#define REPRISE_TESTS_REPLAY_RECORDER_DRIVER_SCRIPTED_PARENT_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "replay/recorder/driver/protocol.h"

namespace reprise::testing {

struct HeardKernel {
  driver_wire::KernelRequest request;
  std::vector<driver_wire::Parameter> parameters;
  std::string name;
  uint64_t launches = 0;  // of its counter
  uint64_t timed = 0;
  uint64_t total_ns = 0;
  uint64_t substituted = 0;
  uint64_t declined[driver_wire::kDeclines] = {};
};

struct HeardRange {
  driver_wire::LiveRange range;
  std::string symbol;
  std::string before;
  std::string after;
};

struct HeardRecording {
  driver_wire::BeginRequest begin;
  std::string kernel;
  std::string arguments;
  driver_wire::PrologueRequest prologue;
  std::vector<HeardRange> ranges;
  driver_wire::EpilogueNotice end;
  bool complete = false;
};

struct HeardProcess {
  driver_wire::HelloRequest hello;
  std::string executable;
  std::vector<HeardKernel> kernels;
  std::map<uint64_t, std::string> modules;
  std::vector<driver_wire::BeginRequest> begins;
  std::vector<HeardRecording> recordings;
  std::vector<std::string> problems;
  std::vector<std::string> abandoned;
};

struct Script {
  uint32_t flags = 0;
  uint64_t arena_base = 0x200000000000;
  uint64_t arena_stride = uint64_t{1} << 32;
  uint64_t patience_ms = 20000;
  std::function<bool(const std::string& kernel)> wanted =
      [](const std::string&) { return false; };
  std::function<driver_wire::Verdict(const std::string& kernel,
                                     const driver_wire::BeginRequest&)>
      verdict = [](const std::string&, const driver_wire::BeginRequest&) {
        return driver_wire::kRecord;
      };
  std::vector<std::string> variables;
  // Tuned code of a kernel: Substitutes, each with what follows it.
  std::function<std::vector<std::string>(const std::string& kernel)>
      substitutes =
          [](const std::string&) { return std::vector<std::string>(); };
  // Of launches whose arguments may hold a texture.
  driver_wire::Verdict textured = driver_wire::kRecord;
  driver_wire::Verdict filled = driver_wire::kRecord;
  // Closes the connection instead of answering this message, or answers it with
  // nonsense; 0: neither.
  uint32_t vanish_at = 0;
  uint32_t nonsense_at = 0;
  // Gives a window and takes nothing out of it.
  bool vanish_while_copying = false;
  // Closes the connection once tuned code is sent.
  bool vanish_after_substitutes = false;
};

class ScriptedParent {
 public:
  ScriptedParent(const std::string& socket_path, Script script);
  ~ScriptedParent();
  ScriptedParent(const ScriptedParent&) = delete;
  ScriptedParent& operator=(const ScriptedParent&) = delete;

  // Waits for the connections to end, then what each said.
  const std::vector<HeardProcess>& Heard();

 private:
  class Connection;

  void Accept();

  Script script_;
  int listener_ = -1;
  std::thread acceptor_;
  std::mutex mutex_;
  std::vector<std::thread> threads_;
  std::vector<HeardProcess> heard_;
};

}  // namespace reprise::testing

#endif  // REPRISE_TESTS_REPLAY_RECORDER_DRIVER_SCRIPTED_PARENT_H_
