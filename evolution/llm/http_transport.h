// One HTTP POST whose answer is read while it comes. The seam to the network:
// tests of what is above have another one.
#ifndef REPRISE_EVOLUTION_LLM_HTTP_TRANSPORT_H_
#define REPRISE_EVOLUTION_LLM_HTTP_TRANSPORT_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "evolution/llm/chat_model.h"

namespace reprise::evolution {

struct HttpPost {
  std::string url;
  std::vector<std::string> headers;  // "Name: value"; they may hold keys
  std::string body;
  absl::Duration connect_timeout = absl::Seconds(20);
  absl::Duration idle_timeout = absl::Minutes(2);  // without a byte
};

struct HttpHead {
  int status = 0;
  std::string content_type;  // "": none
  std::string retry_after;   // "": none
};

// Called from within Post().
class HttpSink {
 public:
  virtual ~HttpSink() = default;
  virtual void Head(const HttpHead& head) = 0;
  // After Head(). False: nothing more is wanted.
  virtual bool Body(std::string_view bytes) = 0;
  // All that is wanted came: what follows is waited for only shortly, so that
  // the connection can be used again, and is no matter if it fails.
  virtual bool complete() const = 0;
};

class HttpTransport {
 public:
  virtual ~HttpTransport() = default;

  // Blocks. OK: an answer of any status came whole, or the sink wants no more.
  // CANCELLED, DEADLINE_EXCEEDED: as `limits` says. ABORTED: no connection, so
  // that nothing was sent. UNAVAILABLE: the connection broke, or nothing came
  // for too long. INVALID_ARGUMENT: nothing was sent, and it is not to be tried
  // again (a certificate that nobody trusts). Messages hold no header.
  virtual absl::Status Post(const HttpPost& post, const ChatLimits& limits,
                            HttpSink* sink) = 0;
};

// By libcurl: HTTP and HTTPS (certificates are checked), no redirects, proxies
// as the environment says except to loopback. Connections are kept and used
// again. Thread-safe: calls run beside each other.
std::unique_ptr<HttpTransport> MakeCurlTransport();

// OK for an http or https URL without user and password. Where a key is sent,
// http goes to loopback only. INVALID_ARGUMENT says what is wrong.
absl::Status CheckUrl(const std::string& url, bool sends_key);

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_LLM_HTTP_TRANSPORT_H_
