#include "evolution/llm/sse.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace reprise::evolution {

absl::Status SseParser::Feed(std::string_view bytes,
                             std::vector<SseEvent>* events) {
  while (!bytes.empty()) {
    if (after_cr_ && bytes.front() == '\n') {
      after_cr_ = false;
      bytes.remove_prefix(1);
      continue;
    }
    after_cr_ = false;
    const size_t end = bytes.find_first_of("\r\n");
    line_.append(bytes.substr(0, end));
    if (line_.size() + event_.data.size() > max_event_bytes_) {
      return absl::ResourceExhaustedError(
          absl::StrCat("got an event of more than ", max_event_bytes_,
                       " bytes in the stream"));
    }
    if (end == std::string_view::npos) break;
    after_cr_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    Line(events);
  }
  return absl::OkStatus();
}

void SseParser::End(std::vector<SseEvent>* events) {
  if (!line_.empty()) Line(events);
  Dispatch(events);
}

void SseParser::Line(std::vector<SseEvent>* events) {
  const std::string whole = std::exchange(line_, "");
  std::string_view line = whole;
  if (std::exchange(first_line_, false) && line.starts_with("\xEF\xBB\xBF")) {
    line.remove_prefix(3);
  }
  if (line.empty()) return Dispatch(events);
  const size_t colon = line.find(':');
  const std::string_view field = line.substr(0, colon);
  std::string_view value;
  if (colon != std::string_view::npos) value = line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "event") {
    event_.type = value;
  } else if (field == "data") {
    if (has_data_) event_.data += '\n';
    event_.data += value;
    has_data_ = true;
  }
}

void SseParser::Dispatch(std::vector<SseEvent>* events) {
  if (has_data_) events->push_back(std::move(event_));
  event_ = {};
  has_data_ = false;
}

}  // namespace reprise::evolution
