#include "gradwire/status.h"

namespace gradwire {

std::string_view error_name(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "InvalidArgument";
    case ErrorCode::kUnknownCodec:
      return "UnknownCodec";
    case ErrorCode::kUnknownParameter:
      return "UnknownParameter";
    case ErrorCode::kOutOfRange:
      return "OutOfRange";
    case ErrorCode::kUnsupportedDType:
      return "UnsupportedDType";
    case ErrorCode::kBufferTooSmall:
      return "BufferTooSmall";
    case ErrorCode::kOutOfMemory:
      return "OutOfMemory";
    case ErrorCode::kTruncated:
      return "Truncated";
    case ErrorCode::kTrailingBytes:
      return "TrailingBytes";
    case ErrorCode::kBadMagic:
      return "BadMagic";
    case ErrorCode::kUnsupportedVersion:
      return "UnsupportedVersion";
    case ErrorCode::kBadHeader:
      return "BadHeader";
    case ErrorCode::kHeaderChecksum:
      return "HeaderChecksum";
    case ErrorCode::kBlockChecksum:
      return "BlockChecksum";
    case ErrorCode::kCorruptBlock:
      return "CorruptBlock";
    case ErrorCode::kShapeMismatch:
      return "ShapeMismatch";
    case ErrorCode::kPeerMismatch:
      return "PeerMismatch";
    case ErrorCode::kPeerLost:
      return "PeerLost";
    case ErrorCode::kDeadlineExceeded:
      return "DeadlineExceeded";
    case ErrorCode::kPeerError:
      return "PeerError";
    case ErrorCode::kRetired:
      return "Retired";
    case ErrorCode::kInternal:
      return "Internal";
  }
  return "Unknown";  // a number from another release, read from an error frame
}

std::string Error::to_string() const {
  std::string text(error_name(code));
  if (!mine.empty() && !theirs.empty()) {
    text += ": " + (field.empty() ? "" : field + ": ") + "mine " + mine + ", theirs " + theirs;
  } else if (message.empty() && !field.empty()) {
    text += ": " + field;
  }
  if (!message.empty()) text += ": " + message;
  if (rank >= 0 || sequence > 0) {
    text += " (";
    if (rank >= 0) text += "rank " + std::to_string(rank);
    if (rank >= 0 && sequence > 0) text += ", ";
    if (sequence > 0) text += "sequence " + std::to_string(sequence);
    text += ")";
  }
  return text;
}

}  // namespace gradwire
