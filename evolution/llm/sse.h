// Splits a stream of server-sent events (WHATWG HTML, section 9.2) that comes
// in pieces of any size. No input or output; not thread-safe.
#ifndef REPRISE_EVOLUTION_LLM_SSE_H_
#define REPRISE_EVOLUTION_LLM_SSE_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace reprise::evolution {

struct SseEvent {
  std::string type;  // "": none was named
  std::string data;  // its lines joined by "\n"
};

class SseParser {
 public:
  // An event of more bytes is refused.
  explicit SseParser(size_t max_event_bytes = 4 << 20)
      : max_event_bytes_(max_event_bytes) {}

  // Appends the events that `bytes` complete to `events`. How a stream is cut
  // into pieces changes nothing. Events without data are left out, as are
  // comments, ids and retry times.
  // RESOURCE_EXHAUSTED: an event is too large; nothing more can be read.
  absl::Status Feed(std::string_view bytes, std::vector<SseEvent>* events);

  // The stream ended: an event that has no empty line behind it is given too
  // (the standard drops it; servers that leave the line out are common).
  void End(std::vector<SseEvent>* events);

 private:
  void Line(std::vector<SseEvent>* events);
  void Dispatch(std::vector<SseEvent>* events);

  const size_t max_event_bytes_;
  bool first_line_ = true;
  bool after_cr_ = false;
  std::string line_;
  SseEvent event_;
  bool has_data_ = false;
};

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_LLM_SSE_H_
