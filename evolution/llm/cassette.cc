#include "evolution/llm/cassette.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "evolution/llm/json_util.h"
#include "evolution/llm/quote.h"
#include "replay/base/file_util.h"
#include "replay/base/log.h"
#include "replay/base/status_macros.h"

namespace reprise::evolution {
namespace {

constexpr std::string_view kFirstLine = R"({"cassette":1})";

Json ToJson(const ChatRequest& request) {
  Json json;
  json["messages"] = Json::array();
  for (const ChatMessage& message : request.messages) {
    Json entry;
    entry["role"] = static_cast<int>(message.role);
    entry["text"] = message.text;
    json["messages"].push_back(std::move(entry));
  }
  json["max_output_tokens"] = request.max_output_tokens;
  json["temperature"] = request.temperature;
  json["seed"] = request.seed;
  return json;
}

Json ToJson(const ChatReply& reply) {
  Json json;
  json["text"] = reply.text;
  json["finish"] = static_cast<int>(reply.finish);
  json["usage"] = {reply.usage.prompt_tokens, reply.usage.cached_tokens,
                   reply.usage.output_tokens, reply.usage.reasoning_tokens,
                   reply.usage.cache_write_tokens};
  return json;
}

// The readers below take what ToJson makes; none: it is something else.
std::optional<ChatRequest> RequestOf(const Json& json) {
  ChatRequest request;
  const Json& messages = Member(json, "messages");
  const Json& seed = Member(json, "seed");
  const Json& temperature = Member(json, "temperature");
  const Json& most = Member(json, "max_output_tokens");
  if (!messages.is_array() || !seed.is_number_unsigned() ||
      !temperature.is_number() || !most.is_number_integer()) {
    return std::nullopt;
  }
  for (const Json& message : messages) {
    const uint64_t role = Count(message, "role");
    if (role > 2 || !Member(message, "text").is_string()) return std::nullopt;
    request.messages.push_back(
        {static_cast<ChatRole>(role), Text(message, "text")});
  }
  request.max_output_tokens = most.get<int>();
  request.temperature = temperature.get<double>();
  request.seed = seed.get<uint64_t>();
  return request;
}

std::optional<ChatReply> ReplyOf(const Json& json) {
  const Json& usage = Member(json, "usage");
  const uint64_t finish = Count(json, "finish");
  if (!Member(json, "text").is_string() || finish > 2 || !usage.is_array() ||
      usage.size() != 5 ||
      !std::all_of(usage.begin(), usage.end(), [](const Json& count) {
        return count.is_number_unsigned();
      })) {
    return std::nullopt;
  }
  ChatReply reply;
  reply.text = Text(json, "text");
  reply.finish = static_cast<FinishReason>(finish);
  reply.usage = {usage[0].get<uint64_t>(), usage[1].get<uint64_t>(),
                 usage[2].get<uint64_t>(), usage[3].get<uint64_t>(),
                 usage[4].get<uint64_t>()};
  return reply;
}

std::optional<absl::StatusOr<ChatReply>> ResultOf(const Json& exchange) {
  const Json& error = Member(exchange, "error");
  if (error.is_object()) {
    const uint64_t code = Count(error, "code");
    if (code == 0 || code > 16) return std::nullopt;
    return absl::Status(static_cast<absl::StatusCode>(code),
                        Text(error, "message"));
  }
  auto reply = ReplyOf(Member(exchange, "reply"));
  if (!reply.has_value()) return std::nullopt;
  return *std::move(reply);
}

// The first place where two texts differ, with what is there.
std::string DifferenceOf(std::string_view recorded, std::string_view now) {
  const auto [a, b] =
      std::mismatch(recorded.begin(), recorded.end(), now.begin(), now.end());
  const auto at = static_cast<size_t>(a - recorded.begin());
  const auto line = std::count(recorded.begin(), a, '\n') + 1;
  const auto begin = recorded.substr(0, at).rfind('\n') + 1;
  const auto from = std::max(begin, at - std::min<size_t>(at, 30));
  const auto show = [&](std::string_view text) {  // to the line's end
    const size_t end = std::min(text.find('\n', at), at + 60);
    return QuotedLine(text.substr(from, end - from));
  };
  return absl::StrCat("line ", line, ", byte ", at, ": recorded \"",
                      show(recorded), "\", now \"", show(now), "\"");
}

// "": the same request.
std::string DifferenceOf(const ChatRequest& recorded, const ChatRequest& now) {
  const auto differ = [](const char* what, auto a, auto b) {
    return absl::StrCat(what, " was ", a, " and is ", b);
  };
  const size_t both = std::min(recorded.messages.size(), now.messages.size());
  for (size_t i = 0; i < both; ++i) {
    const ChatMessage& a = recorded.messages[i];
    const ChatMessage& b = now.messages[i];
    const std::string which = absl::StrCat("message ", i + 1);
    if (a.role != b.role) return which + " has another role";
    // As it was written: what is not UTF-8 is not kept.
    const std::string text = CleanJsonText(b.text);
    if (a.text != text) {
      return absl::StrCat(which, ", ", DifferenceOf(a.text, text));
    }
  }
  if (recorded.messages.size() != now.messages.size()) {
    return differ("the number of messages", recorded.messages.size(),
                  now.messages.size());
  }
  if (recorded.seed != now.seed) {
    return differ("the seed", recorded.seed, now.seed);
  }
  if (recorded.max_output_tokens != now.max_output_tokens) {
    return differ("the most output tokens", recorded.max_output_tokens,
                  now.max_output_tokens);
  }
  if (recorded.temperature != now.temperature) {
    return differ("the temperature", recorded.temperature, now.temperature);
  }
  return "";
}

// What ends a campaign is no part of it: it may go on with another budget.
bool EndsTheCampaign(const absl::Status& status) {
  return absl::IsCancelled(status) || absl::IsResourceExhausted(status) ||
         absl::IsPermissionDenied(status);
}

std::string Where(uint64_t proposal, uint64_t call) {
  return absl::StrCat("proposal ", proposal, ", call ", call);
}

}  // namespace

class CassetteModel : public ChatModel {
 public:
  CassetteModel(Cassette* cassette, uint64_t proposal, std::string name,
                ChatModel* live)
      : cassette_(cassette),
        proposal_(proposal),
        name_(std::move(name)),
        live_(live) {}

  std::string name() const override { return name_; }

  absl::StatusOr<ChatReply> Complete(const ChatRequest& request,
                                     const ChatLimits& limits) override {
    auto reply =
        cassette_->Complete({proposal_, call_}, name_, live_, request, limits);
    ++call_;
    return reply;
  }

 private:
  Cassette* const cassette_;
  const uint64_t proposal_;
  const std::string name_;
  ChatModel* const live_;
  uint64_t call_ = 0;
};

absl::StatusOr<std::unique_ptr<Cassette>> Cassette::Record(
    const std::string& path) {
  const int fd =
      open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return ErrnoToStatus(errno, "cannot record to " + path);
  std::unique_ptr<Cassette> cassette(new Cassette(fd));
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("another process records to ", path));
  }
  RETURN_IF_ERROR(cassette->Read(path, true));
  return cassette;
}

absl::StatusOr<std::unique_ptr<Cassette>> Cassette::Replay(
    const std::string& path) {
  std::unique_ptr<Cassette> cassette(new Cassette(-1));
  RETURN_IF_ERROR(cassette->Read(path, false));
  return cassette;
}

Cassette::~Cassette() {
  if (fd_ >= 0) close(fd_);
}

absl::Status Cassette::Read(const std::string& path, bool repair) {
  const auto bytes = ReadFile(path);
  if (!bytes.ok()) return bytes.status();
  size_t begin = 0;
  for (int number = 1; begin < bytes->size(); ++number) {
    const size_t end = bytes->find('\n', begin);
    if (end == std::string::npos) {
      LOG_WARNING("{}:{} is torn: its {} bytes are dropped", path, number,
                  bytes->size() - begin);
      break;
    }
    const std::string_view line =
        std::string_view(*bytes).substr(begin, end - begin);
    const absl::Status read =
        number > 1 ? ReadLine(line)
        : line == kFirstLine
            ? absl::OkStatus()
            : absl::DataLossError("expected a cassette of version 1");
    if (!read.ok()) {
      return absl::DataLossError(
          absl::StrCat(path, ":", number, ": ", read.message()));
    }
    begin = end + 1;
  }
  if (!repair) {
    return begin > 0 ? absl::OkStatus()
                     : absl::DataLossError(path + ":1: expected a cassette");
  }
  if (begin < bytes->size() && ftruncate(fd_, static_cast<off_t>(begin)) != 0) {
    return ErrnoToStatus(errno, "cannot cut off the torn line of " + path);
  }
  const std::lock_guard lock(mutex_);
  return begin > 0 ? absl::OkStatus() : Append(std::string(kFirstLine));
}

absl::Status Cassette::ReadLine(std::string_view line) {
  const Json json = ParseJson(line);
  const std::lock_guard lock(mutex_);
  const Json& outcome = Member(json, "outcome");
  const Json& exchange = Member(json, "exchange");
  if (outcome.is_object()) {
    if (!Member(outcome, "value").is_string()) {
      return absl::DataLossError("got an outcome without a value");
    }
    outcomes_[Count(outcome, "proposal")] = Text(outcome, "value");
    return absl::OkStatus();
  }
  auto request = RequestOf(Member(exchange, "request"));
  auto reply = ResultOf(exchange);
  if (!request.has_value() || !reply.has_value()) {
    return absl::DataLossError("expected an exchange or an outcome");
  }
  const Key key = {Count(exchange, "proposal"), Count(exchange, "call")};
  const bool is_new =
      exchanges_
          .try_emplace(key, Exchange{Text(exchange, "model"),
                                     *std::move(request), *std::move(reply)})
          .second;
  return is_new ? absl::OkStatus()
                : absl::DataLossError(Where(key.first, key.second) +
                                      " is recorded twice");
}

absl::Status Cassette::Append(const std::string& line) {
  if (!broken_.ok()) return broken_;
  const std::string bytes = line + "\n";
  const ssize_t written = write(fd_, bytes.data(), bytes.size());
  if (written < 0 || fdatasync(fd_) != 0) {
    broken_ = ErrnoToStatus(errno, "cannot write the cassette");
  } else if (static_cast<size_t>(written) < bytes.size()) {
    broken_ = absl::ResourceExhaustedError(
        "cannot write the cassette: the disk took only a part of a line");
  }
  return broken_;
}

std::unique_ptr<ChatModel> Cassette::ModelFor(uint64_t proposal,
                                              std::string name,
                                              ChatModel* live) {
  return std::make_unique<CassetteModel>(this, proposal, std::move(name), live);
}

absl::StatusOr<ChatReply> Cassette::Complete(Key key, const std::string& name,
                                             ChatModel* live,
                                             const ChatRequest& request,
                                             const ChatLimits& limits) {
  const std::string where = Where(key.first, key.second);
  {
    const std::lock_guard lock(mutex_);
    const auto found = exchanges_.find(key);
    if (found != exchanges_.end()) {
      std::string difference = DifferenceOf(found->second.request, request);
      if (found->second.model != name) {
        difference = absl::StrCat("the model was ", found->second.model,
                                  " and is ", name);
      }
      if (difference.empty()) return found->second.reply;
      return absl::FailedPreconditionError(absl::StrCat(
          "the cassette holds another request for ", where, ": ", difference));
    }
    if (fd_ < 0 || live == nullptr) {
      return absl::NotFoundError(
          absl::StrCat("the cassette holds no answer for ", where));
    }
    if (!broken_.ok()) return broken_;
  }
  auto reply = live->Complete(request, limits);
  if (EndsTheCampaign(reply.status())) return reply;
  Json exchange;
  exchange["proposal"] = key.first;
  exchange["call"] = key.second;
  exchange["model"] = name;
  exchange["request"] = ToJson(request);
  if (reply.ok()) {
    // As it will be replayed.
    reply->text = CleanJsonText(reply->text);
    exchange["reply"] = ToJson(*reply);
  } else {
    exchange["error"]["code"] = reply.status().raw_code();
    exchange["error"]["message"] = std::string(reply.status().message());
  }
  Json line;
  line["exchange"] = std::move(exchange);
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(Append(DumpJson(line)));
  ChatRequest kept = request;
  for (ChatMessage& message : kept.messages) {
    message.text = CleanJsonText(message.text);
  }
  exchanges_.try_emplace(key, Exchange{name, std::move(kept), reply});
  return reply;
}

absl::Status Cassette::RecordOutcome(uint64_t proposal,
                                     const std::string& value) {
  const std::string kept = CleanJsonText(value);
  const std::lock_guard lock(mutex_);
  const auto found = outcomes_.find(proposal);
  if (found != outcomes_.end()) {
    if (found->second == kept) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("the cassette holds another outcome of proposal ",
                     proposal, ": ", DifferenceOf(found->second, kept)));
  }
  if (fd_ < 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("the cassette holds no outcome of proposal ", proposal,
                     " and only replays"));
  }
  Json line;
  line["outcome"]["proposal"] = proposal;
  line["outcome"]["value"] = kept;
  RETURN_IF_ERROR(Append(DumpJson(line)));
  outcomes_[proposal] = kept;
  return absl::OkStatus();
}

absl::StatusOr<std::string> Cassette::Outcome(uint64_t proposal) const {
  const std::lock_guard lock(mutex_);
  const auto found = outcomes_.find(proposal);
  if (found != outcomes_.end()) return found->second;
  return absl::NotFoundError(
      absl::StrCat("the cassette holds no outcome of proposal ", proposal));
}

size_t Cassette::exchanges() const {
  const std::lock_guard lock(mutex_);
  return exchanges_.size();
}

}  // namespace reprise::evolution
