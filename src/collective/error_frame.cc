#include "collective/error_frame.h"

#include <charconv>
#include <cstdio>
#include <optional>
#include <utility>

#include "frame/frame_writer.h"

namespace gradwire::internal {
namespace {

// A character takes up to six bytes as \u00XX: 6 (700 + 3 x 180) and the rest fit the frame.
constexpr std::size_t kMaxMessage = 700;
constexpr std::size_t kMaxValue = 180;

void append_string(std::string& json, std::string_view text, std::size_t most) {
  if (text.size() > most) {
    // Not inside a UTF-8 sequence.
    while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0u) == 0x80u) --most;
    text = text.substr(0, most);
  }
  json += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (byte < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof(escape), "\\u%04x", static_cast<unsigned>(byte));
      json += escape;
    } else {
      json += c;
    }
  }
  json += '"';
}

std::string error_metadata(const Error& error) {
  std::string json = "{\"code\": " + std::to_string(static_cast<unsigned>(error.code));
  json += ", \"message\": ";
  append_string(json, error.message, kMaxMessage);
  json += ", \"field\": ";
  append_string(json, error.field, kMaxValue);
  json += ", \"mine\": ";
  append_string(json, error.mine, kMaxValue);
  json += ", \"theirs\": ";
  append_string(json, error.theirs, kMaxValue);
  json += ", \"rank\": " + std::to_string(error.rank) + "}";
  return json;
}

// Reads one flat object of strings and whole numbers.
class ErrorParser {
 public:
  explicit ErrorParser(std::string_view json) : rest_(json) {}

  std::optional<Error> parse() {
    Error error;
    bool has_code = false;
    if (!take('{')) return std::nullopt;
    while (!take('}')) {
      const std::optional<std::string> key = string();
      if (!key || !take(':')) return std::nullopt;
      skip_space();
      if (rest_.starts_with('"')) {
        std::optional<std::string> text = string();
        if (!text) return std::nullopt;
        set(error, *key, std::move(*text));
      } else {
        const std::optional<int> value = number();
        if (!value) return std::nullopt;
        if (*key == "rank") error.rank = *value;
        if (*key == "code") {
          if (*value < 1 || *value > 65535) return std::nullopt;
          error.code = static_cast<ErrorCode>(*value);
          has_code = true;
        }
      }
      if (!take(',') && !rest_.starts_with('}')) return std::nullopt;
    }
    return has_code ? std::optional(std::move(error)) : std::nullopt;
  }

 private:
  void skip_space() {
    while (!rest_.empty() && std::string_view(" \t\r\n").find(rest_[0]) != std::string_view::npos) {
      rest_.remove_prefix(1);
    }
  }

  bool take(char c) {
    skip_space();
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    skip_space();
    return true;
  }

  std::optional<int> number() {
    int value = 0;
    const char* const begin = rest_.data();
    const auto [end, code] = std::from_chars(begin, begin + rest_.size(), value);
    if (code != std::errc{}) return std::nullopt;
    rest_.remove_prefix(static_cast<std::size_t>(end - begin));
    skip_space();
    return value;
  }

  std::optional<std::string> string() {
    if (!rest_.starts_with('"')) return std::nullopt;
    rest_.remove_prefix(1);
    std::string text;
    while (!rest_.empty() && rest_[0] != '"') {
      if (rest_[0] != '\\') {
        text += rest_[0];
        rest_.remove_prefix(1);
      } else if (!escape(text)) {
        return std::nullopt;
      }
    }
    if (rest_.empty()) return std::nullopt;
    rest_.remove_prefix(1);
    return text;
  }

  // What follows a backslash: of the escapes of JSON those that write_error_frame() uses.
  bool escape(std::string& text) {
    if (rest_.size() < 2) return false;
    const char c = rest_[1];
    if (c == '"' || c == '\\') {
      text += c;
      rest_.remove_prefix(2);
      return true;
    }
    unsigned code = 0;
    if (c != 'u' || rest_.size() < 6) return false;
    const auto [end, error] = std::from_chars(rest_.data() + 2, rest_.data() + 6, code, 16);
    if (error != std::errc{} || end != rest_.data() + 6 || code > 0x7F) return false;
    text += static_cast<char>(code);
    rest_.remove_prefix(6);
    return true;
  }

  static void set(Error& error, std::string_view key, std::string text) {
    if (key == "message") error.message = std::move(text);
    if (key == "field") error.field = std::move(text);
    if (key == "mine") error.mine = std::move(text);
    if (key == "theirs") error.theirs = std::move(text);
  }

  std::string_view rest_;
};

}  // namespace

std::vector<std::byte> write_error_frame(const FrameHeader& place, const Error& error) {
  const std::string json = error_metadata(error);
  FrameHeader header = place;
  header.op = Op::kError;
  header.part_count = 0;
  header.block_count = 0;
  header.value_count = 0;
  header.metadata_bytes = static_cast<std::uint32_t>(json.size());
  std::vector<std::byte> frame(kMaxErrorFrameBytes);
  std::size_t length = 0;
  if (Result<FrameWriter> writer = FrameWriter::begin(header, frame); writer.ok()) {
    writer->metadata(json);
    if (Result<std::size_t> end = writer->finish(); end.ok()) length = *end;
  }
  frame.resize(length);
  return frame;
}

Error parse_error_metadata(std::string_view json) {
  if (std::optional<Error> error = ErrorParser(json).parse()) return std::move(*error);
  Error error;
  error.code = ErrorCode::kPeerError;
  error.message = "it failed and its report cannot be read";
  return error;
}

Error translate_error(Error report, int sender, int me) {
  const std::string who = "rank " + std::to_string(sender);
  const bool about_me = report.rank == me;
  switch (report.code) {
    case ErrorCode::kPeerMismatch:
      if (about_me) {
        std::swap(report.mine, report.theirs);
        report.rank = sender;
      }
      return report;
    case ErrorCode::kPeerLost:
    case ErrorCode::kDeadlineExceeded:
    case ErrorCode::kPeerError:
      if (about_me || report.rank < 0) break;
      if (report.message.find("reported by rank") == std::string::npos) {
        report.message += " (reported by " + who + ")";
      }
      return report;
    default:
      break;
  }
  const bool relayed = report.code == ErrorCode::kPeerError;
  std::string message = who + ": ";
  if (!relayed) message += std::string(error_name(report.code)) + ": ";
  report.message = message + report.message;
  report.code = ErrorCode::kPeerError;
  report.rank = sender;
  return report;
}

}  // namespace gradwire::internal
