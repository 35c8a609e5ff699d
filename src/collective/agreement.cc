#include "collective/agreement.h"

#include <cstdio>
#include <string>

#include "core/byte_reader.h"
#include "core/byte_writer.h"
#include "core/counter_rng.h"
#include "core/float_bits.h"

namespace gradwire::internal {
namespace {

using enum HeaderField;

// In groups, the first difference of the first group counts.
constexpr HeaderFieldSet kCallFields{op, dtype, reduction, codec};
constexpr HeaderFieldSet kCodecFields{rounding,       scale,    group, block_values,
                                      quantizer_step, mantissa, bits,  cast_dtype,
                                      options,        seed,     coder, variant};
constexpr HeaderFieldSet kStepFields{step};
constexpr HeaderFieldSet kPlaceFields{
    table,    schedule, world,      sender,      segment,     phase,         segment_count,
    group_id, sequence, part_count, value_count, first_value, metadata_bytes};

std::optional<Error> compare(const FrameHeader& mine, const FrameHeader& theirs,
                             HeaderFieldSet fields, int peer) {
  auto difference = compare_headers(mine, theirs, fields);
  if (!difference) return std::nullopt;
  return mismatch_error(difference->field, std::move(difference->mine),
                        std::move(difference->theirs), peer);
}

std::optional<Error> compare(std::string_view field, std::uint64_t mine, std::uint64_t theirs,
                             int peer) {
  if (mine == theirs) return std::nullopt;
  return mismatch_error(field, std::to_string(mine), std::to_string(theirs), peer);
}

// The first entry in which the part tables differ, as far as both have it.
std::optional<Error> compare_parts(std::span<const SegmentPiece> pieces, const FrameView& frame,
                                   int peer) {
  for (std::uint32_t i = 0; i < pieces.size() && i < frame.header().part_count; ++i) {
    const std::uint64_t theirs = frame.part_values(i);
    if (pieces[i].values == theirs) continue;
    const std::string entry = "part at value " + std::to_string(pieces[i].first_value) + ": ";
    return mismatch_error("parts", entry + std::to_string(pieces[i].values),
                          entry + std::to_string(theirs), peer);
  }
  return std::nullopt;
}

std::optional<Agreement> read_agreement(std::string_view text) noexcept {
  if (text.size() != kAgreementBytes) return std::nullopt;
  ByteReader reader(std::as_bytes(std::span(text)));
  Agreement agreement;
  const bool ok = reader.read(&agreement.value_count) && reader.read(&agreement.part_count) &&
                  reader.read(&agreement.parts_hash) && reader.read(&agreement.segment_bytes) &&
                  reader.read(&agreement.has_feedback) && reader.read(&agreement.feedback.beta) &&
                  reader.read(&agreement.feedback.momentum) &&
                  reader.read(&agreement.feedback.reset_interval);
  return ok ? std::optional(agreement) : std::nullopt;
}

std::string hash_text(std::uint64_t hash) {
  char text[24];
  std::snprintf(text, sizeof(text), "hash %016llx", static_cast<unsigned long long>(hash));
  return text;
}

std::string feedback_text(std::uint32_t has_feedback) {
  if (has_feedback > 1) return std::to_string(has_feedback);
  return has_feedback == 1 ? "on" : "off";
}

std::optional<Error> compare_floats(std::string_view field, float mine, float theirs, int peer) {
  // By their bits: what the peer says may be a NaN.
  if (float32_bits(mine) == float32_bits(theirs)) return std::nullopt;
  return mismatch_error(field, std::to_string(mine), std::to_string(theirs), peer);
}

std::optional<Error> compare_feedback(const Agreement& mine, const Agreement& theirs, int peer) {
  if (mine.has_feedback != theirs.has_feedback) {
    return mismatch_error("error_feedback", feedback_text(mine.has_feedback),
                          feedback_text(theirs.has_feedback), peer);
  }
  const ErrorFeedbackSettings& a = mine.feedback;
  const ErrorFeedbackSettings& b = theirs.feedback;
  if (auto error = compare_floats("error_feedback.beta", a.beta, b.beta, peer)) return error;
  if (auto error = compare_floats("error_feedback.momentum", a.momentum, b.momentum, peer))
    return error;
  return compare("error_feedback.reset_interval", a.reset_interval, b.reset_interval, peer);
}

std::optional<Error> compare_agreement(const ExpectedFrame& expected, const FrameView& frame,
                                       int peer) {
  const Agreement& mine = *expected.agreement;
  const std::optional<Agreement> theirs = read_agreement(frame.metadata());
  if (!theirs) {
    return compare("metadata_bytes", kAgreementBytes, frame.metadata().size(), peer);
  }
  if (auto error = compare_feedback(mine, *theirs, peer)) return error;
  if (auto error = compare("value_count", mine.value_count, theirs->value_count, peer)) {
    return error;
  }
  if (auto error = compare("part_count", mine.part_count, theirs->part_count, peer)) return error;
  if (auto error = compare("segment_bytes", mine.segment_bytes, theirs->segment_bytes, peer)) {
    return error;
  }
  if (mine.parts_hash == theirs->parts_hash) return std::nullopt;
  // Where they differ may lie in another segment; then the hash is all there is to say.
  if (auto error = compare_parts(expected.pieces, frame, peer)) return error;
  return mismatch_error("parts", hash_text(mine.parts_hash), hash_text(theirs->parts_hash), peer);
}

}  // namespace

Error mismatch_error(std::string_view field, std::string mine, std::string theirs, int peer) {
  Error error;
  error.code = ErrorCode::kPeerMismatch;
  error.message = "the ranks disagree";
  error.field = field;
  error.mine = std::move(mine);
  error.theirs = std::move(theirs);
  error.rank = peer;
  return error;
}

Agreement make_agreement(std::span<const PartLayout> parts, std::uint32_t segment_bytes,
                         const ErrorFeedback* feedback) noexcept {
  Agreement agreement;
  agreement.part_count = parts.size();
  agreement.segment_bytes = segment_bytes;
  if (feedback != nullptr) {
    agreement.has_feedback = 1;
    agreement.feedback = feedback->settings();
  }
  for (const PartLayout& part : parts) {
    agreement.value_count += part.values;
    for (const std::uint64_t number : {part.values, std::uint64_t{part.tensor}, part.first_index}) {
      agreement.parts_hash = mix64(agreement.parts_hash + number);
    }
  }
  return agreement;
}

AgreementText write_agreement(const Agreement& agreement) noexcept {
  AgreementText text{};
  ByteWriter writer(std::as_writable_bytes(std::span(text)));
  // Cannot fail: the sizes add up to kAgreementBytes.
  static_cast<void>(writer.write(agreement.value_count) && writer.write(agreement.part_count) &&
                    writer.write(agreement.parts_hash) && writer.write(agreement.segment_bytes) &&
                    writer.write(agreement.has_feedback) && writer.write(agreement.feedback.beta) &&
                    writer.write(agreement.feedback.momentum) &&
                    writer.write(agreement.feedback.reset_interval));
  return text;
}

std::optional<Error> check_frame(const ExpectedFrame& expected, const FrameView& frame, int peer) {
  const FrameHeader& mine = expected.header;
  const FrameHeader& theirs = frame.header();
  if (auto error = compare(mine, theirs, kCallFields, peer)) return error;
  if (auto error = compare(mine, theirs, kCodecFields, peer)) return error;
  if (expected.agreement != nullptr && theirs.phase == Phase::kContribution &&
      theirs.segment == 0) {
    if (auto error = compare_agreement(expected, frame, peer)) return error;
  }
  if (auto error = compare(mine, theirs, kStepFields, peer)) return error;
  if (auto error = compare(mine, theirs, kPlaceFields, peer)) return error;
  return compare_parts(expected.pieces, frame, peer);
}

}  // namespace gradwire::internal
