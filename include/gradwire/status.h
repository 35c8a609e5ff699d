// Errors as values: stable codes, the place, and what was expected.
//
// The library never aborts, prints, exits or throws. Every call that can fail returns a
// Result<T>; bindings turn an Error into the exception of their language. (Text and lists without a
// Result around them, as of to_string(), throw std::bad_alloc when memory runs out.)
#ifndef GRADWIRE_STATUS_H_
#define GRADWIRE_STATUS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace gradwire {

// Stable numbers: they travel in error frames and are exit reasons of the command line.
// A number is never given a new meaning.
enum class ErrorCode : std::uint16_t {
  // The call was wrong.
  kInvalidArgument = 1,
  kUnknownCodec = 2,
  kUnknownParameter = 3,
  kOutOfRange = 4,
  kUnsupportedDType = 5,
  kBufferTooSmall = 6,
  kOutOfMemory = 7,
  // The bytes are wrong.
  kTruncated = 20,
  kTrailingBytes = 21,
  kBadMagic = 22,
  kUnsupportedVersion = 23,
  kBadHeader = 24,
  kHeaderChecksum = 25,
  kBlockChecksum = 26,
  kCorruptBlock = 27,
  kShapeMismatch = 28,  // the frame is fine but does not fit the destination
  // The group of ranks failed.
  kPeerMismatch = 40,      // ranks disagree: field, mine, theirs, rank
  kPeerLost = 41,          // a rank died or its connection broke
  kDeadlineExceeded = 42,  // a rank did not answer in time
  kPeerError = 43,         // another rank reported an error of its own
  kRetired = 44,           // this group has failed before and is not used again
  kInternal = 60,          // a bug in Gradwire
};

// The code's stable name, as in "kTruncated" without the k: "Truncated".
std::string_view error_name(ErrorCode code) noexcept;

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;         // one line for a person, names the field and the value
  std::string field;           // header field or argument, empty if none
  std::string mine;            // value here, as text
  std::string theirs;          // value found or value of the peer, as text
  int rank = -1;               // the rank that is meant, -1 if none
  std::uint64_t sequence = 0;  // number of the collective, 0 if none

  // "PeerMismatch: codec: mine lossless, theirs none (rank 1, sequence 7)"
  std::string to_string() const;
};

// A value or an Error. Check ok() first: value() of a failed result is undefined behaviour.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }
  T& value() & noexcept { return *std::get_if<0>(&state_); }
  const T& value() const& noexcept { return *std::get_if<0>(&state_); }
  T&& value() && noexcept { return std::move(*std::get_if<0>(&state_)); }
  const Error& error() const noexcept { return *std::get_if<1>(&state_); }
  T& operator*() & noexcept { return value(); }
  const T& operator*() const& noexcept { return value(); }
  T* operator->() noexcept { return &value(); }
  const T* operator->() const noexcept { return &value(); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() noexcept = default;
  Result(Error error) : error_(std::move(error)) {}

  bool ok() const noexcept { return !error_.has_value(); }
  explicit operator bool() const noexcept { return ok(); }
  const Error& error() const noexcept { return *error_; }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace gradwire

#endif  // GRADWIRE_STATUS_H_
