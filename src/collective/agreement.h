// What all ranks of a collective must agree on, and the check of every frame against it.
#ifndef GRADWIRE_COLLECTIVE_AGREEMENT_H_
#define GRADWIRE_COLLECTIVE_AGREEMENT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "collective/schedule.h"
#include "frame/frame_reader.h"
#include "frame/header.h"
#include "gradwire/collective.h"
#include "gradwire/status.h"

namespace gradwire::internal {

// What no header says: the layout of the whole tensor, as a header describes one segment only and
// the segments of a shard can be equal although the tensors differ elsewhere; and the error
// feedback, which decides what the values mean. So the first frame of each stream carries this as
// its metadata (docs/format.md 1.5).
struct Agreement {
  std::uint64_t value_count = 0;
  std::uint64_t part_count = 0;
  std::uint64_t parts_hash = 0;  // of values, tensor and first_index of each part, in order
  std::uint32_t segment_bytes = 0;
  std::uint32_t has_feedback = 0;  // 1: yes; without it its settings are 0
  ErrorFeedbackSettings feedback{0, 0, 0};
};
inline constexpr std::size_t kAgreementBytes = 48;
using AgreementText = std::array<char, kAgreementBytes>;

// `feedback`: null without.
Agreement make_agreement(std::span<const PartLayout> parts, std::uint32_t segment_bytes,
                         const ErrorFeedback* feedback) noexcept;
AgreementText write_agreement(const Agreement& agreement) noexcept;

// A frame as this rank expects it from a peer.
struct ExpectedFrame {
  FrameHeader header;  // without lengths, counts of blocks and checksum
  std::span<const SegmentPiece> pieces;
  const Agreement* agreement = nullptr;  // of the first frame of a stream, else null
};

// kPeerMismatch with the first difference. What a user can have set differently comes first, so
// that the message names the cause and not one of its consequences.
std::optional<Error> check_frame(const ExpectedFrame& expected, const FrameView& frame, int peer);

Error mismatch_error(std::string_view field, std::string mine, std::string theirs, int peer);

}  // namespace gradwire::internal

#endif  // GRADWIRE_COLLECTIVE_AGREEMENT_H_
