#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "evolution/llm/call_clock.h"
#include "evolution/llm/http_transport.h"
#include "evolution/llm/text.h"
#include "replay/base/check.h"

namespace reprise::evolution {
namespace {

constexpr size_t kKeptHandles = 64;
constexpr size_t kMaxHeaderBytes = 64 << 10;
constexpr absl::Duration kGraceWhenComplete = absl::Milliseconds(250);

// A transfer handle with connections that it keeps.
struct Handle {
  Handle() : multi(curl_multi_init()), easy(curl_easy_init()) {
    CHECK(multi != nullptr && easy != nullptr);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    curl_easy_cleanup(easy);
    curl_multi_cleanup(multi);
  }
  CURLM* multi;
  CURL* easy;
};

struct Transfer {
  HttpSink* sink = nullptr;
  HttpHead head;
  size_t header_bytes = 0;
  bool told_head = false;
  bool stopped = false;  // by the sink
  absl::Time active = absl::Now();
  std::array<char, CURL_ERROR_SIZE> error = {};

  void TellHead(CURL* easy) {
    if (std::exchange(told_head, true)) return;
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    head.status = static_cast<int>(status);
    sink->Head(head);
  }
};

struct Context {
  Transfer transfer;
  CURL* easy = nullptr;
};

size_t OnHeader(char* data, size_t size, size_t count, void* user) {
  Transfer& transfer = static_cast<Context*>(user)->transfer;
  const std::string_view line(data, size * count);
  transfer.active = absl::Now();
  transfer.header_bytes += line.size();
  if (transfer.header_bytes > kMaxHeaderBytes) return 0;
  if (line.starts_with("HTTP/")) transfer.head = {};
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return line.size();
  const std::string name =
      absl::AsciiStrToLower(std::string(line.substr(0, colon)));
  const std::string value(Stripped(line.substr(colon + 1)));
  if (name == "content-type") transfer.head.content_type = value;
  if (name == "retry-after") transfer.head.retry_after = value;
  return line.size();
}

size_t OnBody(char* data, size_t size, size_t count, void* user) {
  auto* context = static_cast<Context*>(user);
  Transfer& transfer = context->transfer;
  transfer.active = absl::Now();
  transfer.TellHead(context->easy);
  if (transfer.sink->Body({data, size * count})) return size * count;
  transfer.stopped = true;
  return 0;
}

std::string UrlPart(CURLU* url, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, 0) != CURLUE_OK) return "";
  std::string copy(text);
  curl_free(text);
  return copy;
}

bool IsLoopback(const std::string& host) {
  return host == "localhost" || host == "[::1]" ||
         (absl::StartsWith(host, "127.") &&
          host.find_first_not_of("0123456789.") == std::string::npos);
}

struct UrlParts {
  std::string scheme;
  std::string host;
  bool has_user = false;
};

UrlParts Split(const std::string& text) {
  CURLU* url = curl_url();
  const absl::Cleanup free_it = [url] { curl_url_cleanup(url); };
  if (curl_url_set(url, CURLUPART_URL, text.c_str(), 0) != CURLUE_OK) return {};
  return {UrlPart(url, CURLUPART_SCHEME), UrlPart(url, CURLUPART_HOST),
          !UrlPart(url, CURLUPART_USER).empty()};
}

absl::Status StatusOfCurl(CURLcode code, const Transfer& transfer) {
  if (code == CURLE_OK) return absl::OkStatus();
  const char* words =
      transfer.error[0] != 0 ? transfer.error.data() : curl_easy_strerror(code);
  switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
      return absl::InvalidArgumentError(words);
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_OPERATION_TIMEDOUT:  // only connecting has a limit of curl's
      return absl::AbortedError(words);
    case CURLE_PARTIAL_FILE:
    case CURLE_RECV_ERROR:
      return absl::UnavailableError(
          absl::StrCat("the connection broke within the answer: ", words));
    default:
      return absl::UnavailableError(words);
  }
}

class CurlTransport : public HttpTransport {
 public:
  absl::Status Post(const HttpPost& post, const ChatLimits& limits,
                    HttpSink* sink) override {
    std::unique_ptr<Handle> handle = Borrow();
    Context context;
    context.transfer.sink = sink;
    context.easy = handle->easy;
    curl_slist* headers = nullptr;
    for (const std::string& header : post.headers) {
      headers = curl_slist_append(headers, header.c_str());
    }
    // No waiting for leave to send the body.
    headers = curl_slist_append(headers, "Expect:");
    SetUp(post, headers, &context);
    CHECK(curl_multi_add_handle(handle->multi, handle->easy) == CURLM_OK);
    absl::Status status = Run(post, limits, handle->multi, &context.transfer);
    if (status.ok()) context.transfer.TellHead(handle->easy);
    curl_multi_remove_handle(handle->multi, handle->easy);
    curl_easy_reset(handle->easy);
    curl_slist_free_all(headers);
    Return(std::move(handle));
    return status;
  }

 private:
  static void SetUp(const HttpPost& post, curl_slist* headers,
                    Context* context) {
    CURL* easy = context->easy;
    curl_easy_setopt(easy, CURLOPT_URL, post.url.c_str());
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, post.body.data());
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(post.body.size()));
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                     static_cast<long>(std::max<int64_t>(
                         1, absl::ToInt64Milliseconds(post.connect_timeout))));
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, OnHeader);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, context);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, OnBody);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, context);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, context->transfer.error.data());
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "reprise");
    if (IsLoopback(Split(post.url).host)) {
      curl_easy_setopt(easy, CURLOPT_PROXY, "");
    }
  }

  static absl::Status Run(const HttpPost& post, const ChatLimits& limits,
                          CURLM* multi, Transfer* transfer) {
    for (int running = 1; running != 0;) {
      if (curl_multi_perform(multi, &running) != CURLM_OK) {
        return absl::UnavailableError("libcurl cannot go on");
      }
      if (running == 0) break;
      const absl::Status within =
          CheckLimits(limits, CallClock::System(), "the request");
      if (!within.ok()) return within;
      const bool complete = transfer->sink->complete();
      const absl::Duration idle = absl::Now() - transfer->active;
      if (complete && idle >= kGraceWhenComplete) return absl::OkStatus();
      if (idle >= post.idle_timeout) {
        return absl::UnavailableError(absl::StrCat(
            "nothing came for ", absl::FormatDuration(post.idle_timeout)));
      }
      curl_multi_poll(multi, nullptr, 0, 50, nullptr);
    }
    int left = 0;
    const CURLMsg* message = curl_multi_info_read(multi, &left);
    CHECK(message != nullptr && message->msg == CURLMSG_DONE);
    if (transfer->stopped || transfer->sink->complete()) {
      return absl::OkStatus();
    }
    return StatusOfCurl(message->data.result, *transfer);
  }

  std::unique_ptr<Handle> Borrow() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return std::make_unique<Handle>();
    std::unique_ptr<Handle> handle = std::move(idle_.back());
    idle_.pop_back();
    return handle;
  }

  void Return(std::unique_ptr<Handle> handle) {
    const std::lock_guard lock(mutex_);
    if (idle_.size() < kKeptHandles) idle_.push_back(std::move(handle));
  }

  std::mutex mutex_;  // guards idle_
  std::vector<std::unique_ptr<Handle>> idle_;
};

}  // namespace

std::unique_ptr<HttpTransport> MakeCurlTransport() {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  CHECK(ready == CURLE_OK);
  return std::make_unique<CurlTransport>();
}

absl::Status CheckUrl(const std::string& url, bool sends_key) {
  const UrlParts parts = Split(url);
  if (parts.has_user) {  // the URL itself is a secret then
    return absl::InvalidArgumentError(
        "got a URL with a user's name in it; keys come from a file or an "
        "environment variable");
  }
  if ((parts.scheme != "http" && parts.scheme != "https") ||
      parts.host.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("got \"", url, "\", expected a URL of http or https"));
  }
  if (parts.scheme == "http" && sends_key && !IsLoopback(parts.host)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a key would go unencrypted to ", parts.host, "; use https"));
  }
  return absl::OkStatus();
}

}  // namespace reprise::evolution
