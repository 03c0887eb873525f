// Records what models were asked and answered, and what came of the proposals,
// so that a campaign runs again exactly, with no model and no network.
//
// A file of lines, each a JSON object. The first is {"cassette":1}; then, in
// the order of their ends:
//   {"exchange":{"proposal":7,"call":0,"model":"fast","request":{...},
//                "reply":{...}}}          or "error":{"code":8,"message":"..."}
//   {"outcome":{"proposal":7,"value":"..."}}
// They are found by the proposal's number and the how-manieth call of it, so
// that calls that run beside each other may end in any order.
//
// A line is one write() behind the file's end, flushed to the disk before the
// reply is given on: whatever ends the process, what the campaign acted on is
// recorded. A last line that is torn is dropped with a warning.
//
// Thread-safe.
#ifndef REPRISE_EVOLUTION_LLM_CASSETTE_H_
#define REPRISE_EVOLUTION_LLM_CASSETTE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "evolution/llm/chat_model.h"

namespace reprise::evolution {

class Cassette {
 public:
  // Opens the file, or makes it, with mode 0600. What is in it already is
  // replayed, what is not is recorded: an interrupted campaign goes on.
  // FAILED_PRECONDITION: another process records to it. DATA_LOSS: a line
  // before the last is no record; the message names it.
  static absl::StatusOr<std::unique_ptr<Cassette>> Record(
      const std::string& path);
  // Only replays; changes nothing. NOT_FOUND; DATA_LOSS as above.
  static absl::StatusOr<std::unique_ptr<Cassette>> Replay(
      const std::string& path);
  ~Cassette();
  Cassette(const Cassette&) = delete;
  Cassette& operator=(const Cassette&) = delete;

  // The model as this proposal's calls see it: the first call of the result is
  // the proposal's call 0, and so on. `live` is asked for what is not recorded;
  // null when replaying. Errors are recorded and replayed too, but for
  // those that end all calls: CANCELLED, RESOURCE_EXHAUSTED, PERMISSION_DENIED.
  // Cassette and `live` outlive the result, which one thread uses.
  //
  // Complete() adds to what `live` gives:
  // NOT_FOUND            replaying, and the call is not recorded
  // FAILED_PRECONDITION  another model, prompt or setting was recorded; the
  //                      message names proposal, call and the first difference
  // UNKNOWN, RESOURCE_EXHAUSTED  the file cannot be written; the reply is lost
  std::unique_ptr<ChatModel> ModelFor(uint64_t proposal, std::string name,
                                      ChatModel* live);

  // What evaluating the proposal gave, as text of the caller's. Recorded
  // already: it has to be the same, else FAILED_PRECONDITION.
  absl::Status RecordOutcome(uint64_t proposal, const std::string& value);
  // NOT_FOUND: not recorded.
  absl::StatusOr<std::string> Outcome(uint64_t proposal) const;

  size_t exchanges() const;

 private:
  friend class CassetteModel;
  struct Exchange {
    std::string model;
    ChatRequest request;
    absl::StatusOr<ChatReply> reply;
  };
  using Key = std::pair<uint64_t, uint64_t>;  // proposal, call

  explicit Cassette(int fd) : fd_(fd) {}
  absl::Status Read(const std::string& path, bool repair);
  absl::Status ReadLine(std::string_view line);
  // With mutex_ held.
  absl::Status Append(const std::string& line);
  absl::StatusOr<ChatReply> Complete(Key key, const std::string& name,
                                     ChatModel* live,
                                     const ChatRequest& request,
                                     const ChatLimits& limits);

  const int fd_;              // -1: replays only
  mutable std::mutex mutex_;  // guards all below
  absl::Status broken_;       // once a write failed, none is tried again
  std::map<Key, Exchange> exchanges_;
  std::map<uint64_t, std::string> outcomes_;
};

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_LLM_CASSETTE_H_
