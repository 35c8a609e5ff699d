#include "frame/frame_reader.h"

#include <bit>
#include <string>
#include <utility>

#include "core/checksum.h"
#include "core/status_macros.h"
#include "frame/limits.h"
#include "gradwire/version.h"

namespace gradwire::internal {
namespace {

Error make_error(ErrorCode code, std::string_view field, std::string theirs, std::string message) {
  Error error;
  error.code = code;
  error.field = field;
  error.theirs = std::move(theirs);
  error.message = std::move(message);
  return error;
}

// A header field whose value is not allowed.
Error bad_field(const FrameHeader& header, HeaderField field, std::string_view expected) {
  std::string value = header_field_text(header, field);
  std::string message = std::string(header_field_name(field)) + " is " + value + ", must be ";
  message += expected;
  return make_error(ErrorCode::kBadHeader, header_field_name(field), std::move(value),
                    std::move(message));
}

Error length_error(ErrorCode code, std::uint64_t have, std::uint64_t need, std::string_view what) {
  return make_error(
      code, "encoded_length", std::to_string(have),
      std::to_string(have) + " bytes, " + std::string(what) + " " + std::to_string(need));
}

// The first checks: 128 bytes, magic, version.
Result<FrameHeader> read_identity(std::span<const std::byte> bytes) {
  if (bytes.size() < kHeaderBytes) {
    return length_error(ErrorCode::kTruncated, bytes.size(), kHeaderBytes, "a header needs");
  }
  const FrameHeader header = read_header(bytes.first<kHeaderBytes>());
  if (header.magic != kMagic) {
    return make_error(ErrorCode::kBadMagic, "magic", std::to_string(header.magic),
                      "not a Gradwire frame: the first four bytes are not \"GWRF\"");
  }
  if (header.version != kFormatVersion) {
    return make_error(ErrorCode::kUnsupportedVersion, "version", std::to_string(header.version),
                      "format version " + std::to_string(header.version) +
                          ", this release reads version " + std::to_string(kFormatVersion));
  }
  return header;
}

Status check_place(const FrameHeader& header) {
  const auto op = static_cast<unsigned>(header.op);
  if (op > static_cast<unsigned>(Op::kBroadcast) && header.op != Op::kError) {
    return bad_field(header, HeaderField::op, "0 to 4 or 255");
  }
  if (header.phase > Phase::kResult) return bad_field(header, HeaderField::phase, "0 to 2");
  if (header.reduction > Reduction::kAvg) {
    return bad_field(header, HeaderField::reduction, "0 to 2");
  }
  if (header.schedule > Schedule::kDirect)
    return bad_field(header, HeaderField::schedule, "0 or 1");
  if (header.segment >= header.segment_count) {
    return bad_field(header, HeaderField::segment, "less than segment_count");
  }
  return {};
}

// Step form: 16 + level; exponent form: 1.
bool is_table(const FrameHeader& header) noexcept {
  if (!is_coded(header.codec)) return header.table == 0;
  return is_coded_table(is_step_form(header.codec, header.mantissa), header.table);
}

Status check_step(const FrameHeader& header, const CodecLimits& limits) {
  const bool mantissa_form = header.codec == CodecId::kNearLossless && header.mantissa != 0;
  if (header.codec == CodecId::kNearLossless) {
    const bool has_step = std::bit_cast<std::uint64_t>(header.quantizer_step) != 0;
    if (has_step == (header.mantissa != 0)) {
      return bad_field(header, HeaderField::mantissa,
                       "0 exactly if there is a quantizer_step, for near_lossless");
    }
    if (mantissa_form && !kMantissaRange.contains(header.mantissa)) {
      return bad_field(header, HeaderField::mantissa, range_text(kMantissaRange));
    }
  } else if (header.mantissa != 0) {
    return bad_field(header, HeaderField::mantissa, "0 for this codec");
  }
  const RealRange range = header.codec == CodecId::kErrorBounded
                              ? bound_range(header.scale, header.rounding)
                          : mantissa_form ? RealRange{}
                                          : limits.quantizer_step;
  if (!range.contains(header.quantizer_step)) {
    return bad_field(header, HeaderField::quantizer_step, range_text(range));
  }
  return {};
}

Status check_bound(const FrameHeader& header) {
  const bool bounded = header.codec == CodecId::kErrorBounded;
  if (bounded ? !is_bound_scale(header.scale) : header.scale != BoundScale::kNone) {
    return bad_field(header, HeaderField::scale, bounded ? "1 to 4" : "none for this codec");
  }
  if (static_cast<unsigned>(header.options) > (bounded ? kAllBoundOptions : 0)) {
    return bad_field(header, HeaderField::options, bounded ? "at most 3" : "none for this codec");
  }
  if (has_option(header.options, BoundOptions::kPerPart) && header.group != kPerPartGroup) {
    return bad_field(header, HeaderField::group, "4096 for one scale for each part");
  }
  return {};
}

Status check_codec(const FrameHeader& header) {
  if (dtype_size(header.dtype) == 0) {
    return bad_field(header, HeaderField::dtype, "a type of format version 0");
  }
  const CodecLimits* limits = find_limits(header.codec);
  if (limits == nullptr) return bad_field(header, HeaderField::codec, "the number of a codec");
  if (!codec_takes(header.codec, header.dtype)) {
    return bad_field(header, HeaderField::dtype,
                     "a type that codec " + std::string(limits->name) + " takes");
  }
  if (!is_coder(header.codec, header.coder)) {
    return bad_field(header, HeaderField::coder, "1 or 2 for coded codecs, else 0");
  }
  if (header.rounding > Rounding::kStochastic) {
    return bad_field(header, HeaderField::rounding, "0 or 1");
  }
  const std::uint32_t roundings = roundings_of(*limits, header.mantissa);
  if (!has_number(roundings, static_cast<std::uint32_t>(header.rounding))) {
    return bad_field(header, HeaderField::rounding, roundings_text(roundings));
  }
  if (!kBlockValuesRange.contains(header.block_values)) {
    return bad_field(header, HeaderField::block_values, "a multiple of 4096 from 4096 to 1048576");
  }
  if (!limits->group.contains(header.group)) {
    return bad_field(header, HeaderField::group, range_text(limits->group));
  }
  GRADWIRE_RETURN_IF_ERROR(check_bound(header));
  GRADWIRE_RETURN_IF_ERROR(check_step(header, *limits));
  if (!limits->variant.contains(header.variant)) {
    return bad_field(header, HeaderField::variant, range_text(limits->variant));
  }
  if (!is_table(header)) {
    return bad_field(header, HeaderField::table, "a built-in table of this codec");
  }
  if (!(limits->bits == 0 ? header.bits == 0 : has_number(limits->bits, header.bits))) {
    return bad_field(header, HeaderField::bits, bits_text(limits->bits));
  }
  const auto cast_dtype = static_cast<std::uint32_t>(header.cast_dtype);
  if (!(limits->cast_dtypes == 0 ? cast_dtype == 0 : has_number(limits->cast_dtypes, cast_dtype))) {
    return bad_field(header, HeaderField::cast_dtype, dtypes_text(limits->cast_dtypes));
  }
  return {};
}

Status check_counts(const FrameHeader& header) {
  if (header.op == Op::kError) {
    for (const HeaderField field :
         {HeaderField::value_count, HeaderField::part_count, HeaderField::block_count}) {
      if (header_field_text(header, field) != "0") {
        return bad_field(header, field, "0 in an error frame");
      }
    }
  }
  // Rounded up without overflow.
  const std::uint64_t blocks = header.value_count / header.block_values +
                               (header.value_count % header.block_values != 0 ? 1 : 0);
  if (header.block_count != blocks) {
    return bad_field(header, HeaderField::block_count, "value_count / block_values, rounded up");
  }
  return {};
}

Error bad_entry(std::uint32_t block, std::string_view field, std::uint64_t value,
                std::string_view expected) {
  return make_error(ErrorCode::kBadHeader, field, std::to_string(value),
                    "block " + std::to_string(block) + ": " + std::string(field) + " is " +
                        std::to_string(value) + ", must be " + std::string(expected));
}

std::uint32_t mantissa_bits(DType dtype) noexcept {
  switch (dtype) {
    case DType::kFloat32:
      return 23;
    case DType::kFloat64:
      return 52;
    case DType::kFloat16:
      return 10;
    case DType::kBFloat16:
      return 7;
    default:
      return 0;
  }
}

// What format.md 3.1 and 3.2 ask of a coded block's mantissa and plane.
Status check_mantissa(const FrameHeader& header, std::uint32_t block, const BlockEntry& entry) {
  constexpr std::uint32_t kMostLaneBits = 9;
  const std::uint32_t most =
      is_step_form(header.codec, header.mantissa) ? 0 : mantissa_bits(header.dtype);
  if (entry.mantissa > most) {
    return bad_entry(block, "mantissa", entry.mantissa, "at most " + std::to_string(most));
  }
  const std::uint32_t plane_bits = 8u * entry.plane_bytes;
  if (plane_bits > entry.mantissa || 1 + entry.mantissa - plane_bits > kMostLaneBits) {
    return bad_entry(
        block, "plane_bytes", entry.plane_bytes,
        "such that 0 to 8 of " + std::to_string(entry.mantissa) + " mantissa bits are left");
  }
  return {};
}

// Everything of an entry but its length.
Status check_entry(const FrameHeader& header, std::uint32_t block, const BlockEntry& entry) {
  const bool coded = entry.kind == BlockKind::kCoded;
  const CodecLimits& limits = *find_limits(header.codec);
  if (entry.kind != BlockKind::kStored && entry.kind != limits.kind) {
    return bad_entry(block, "kind", static_cast<unsigned>(entry.kind), "a kind of the codec");
  }
  if (coded ? entry.lanes != 1 && entry.lanes != 16 && entry.lanes != 32 && entry.lanes != 64
            : entry.lanes != 0) {
    return bad_entry(block, "lanes", entry.lanes, "1, 16, 32 or 64 if coded, else 0");
  }
  if (entry.plane_bytes > (coded ? 6 : 0)) {
    return bad_entry(block, "plane_bytes", entry.plane_bytes, "0 to 6 if coded, else 0");
  }
  if (entry.scale_bits > (coded ? 12 : 0)) {
    return bad_entry(block, "scale_bits", entry.scale_bits, "0 to 12 if coded, else 0");
  }
  if (!coded && entry.scale_base != 0) {
    return bad_entry(block, "scale_base", static_cast<std::uint16_t>(entry.scale_base),
                     "0 unless coded");
  }
  if (!coded && entry.mantissa != 0) {
    return bad_entry(block, "mantissa", entry.mantissa, "0 unless coded");
  }
  if (entry.flags > (coded ? kBlockFlagOwnTable : 0)) {
    return bad_entry(block, "flags", entry.flags, "0 or, if coded, 1");
  }
  if (!coded && entry.word_count != 0) {
    return bad_entry(block, "word_count", entry.word_count, "0 unless coded");
  }
  const bool may_count = entry.kind != BlockKind::kStored && limits.counts_outliers;
  if (entry.outlier_count != 0 && !may_count) {
    return bad_entry(block, "outlier_count", entry.outlier_count, "0 in this kind of block");
  }
  if (entry.reserved != 0) return bad_entry(block, "reserved", entry.reserved, "0");
  if (coded) return check_mantissa(header, block, entry);
  return {};
}

}  // namespace

Result<std::uint64_t> read_frame_length(std::span<const std::byte> bytes) {
  GRADWIRE_ASSIGN_OR_RETURN(const FrameHeader header, read_identity(bytes));
  if (header.encoded_length < header.header_length()) {
    return bad_field(header, HeaderField::encoded_length, "at least the header's length");
  }
  return header.encoded_length;
}

Result<FrameView> FrameView::open(std::span<const std::byte> frame) {
  GRADWIRE_ASSIGN_OR_RETURN(const FrameHeader header, read_identity(frame));
  if (frame.size() < header.encoded_length) {
    return length_error(ErrorCode::kTruncated, frame.size(), header.encoded_length,
                        "the header says");
  }
  if (frame.size() > header.encoded_length) {
    return length_error(ErrorCode::kTrailingBytes, frame.size(), header.encoded_length,
                        "the header says");
  }
  if (header.header_length() > header.encoded_length) {
    return bad_field(header, HeaderField::encoded_length,
                     "at least the length of header, part table, index and metadata");
  }
  const auto tables = static_cast<std::size_t>(header.header_length()) - kHeaderBytes;
  const std::uint32_t checksum =
      crc32c(frame.subspan(kHeaderBytes, tables), crc32c(frame.first(kChecksumOffset)));
  if (checksum != header.checksum) {
    return make_error(ErrorCode::kHeaderChecksum, "checksum", std::to_string(header.checksum),
                      "the checksum of header, part table, index and metadata is wrong");
  }
  GRADWIRE_RETURN_IF_ERROR(check_place(header));
  GRADWIRE_RETURN_IF_ERROR(check_codec(header));
  GRADWIRE_RETURN_IF_ERROR(check_counts(header));
  const FrameView view(frame, header);
  GRADWIRE_RETURN_IF_ERROR(view.check_parts());
  GRADWIRE_RETURN_IF_ERROR(view.check_index());
  return view;
}

Status FrameView::check_parts() const {
  std::uint64_t left = header_.value_count;
  for (std::uint32_t part = 0; part < header_.part_count; ++part) {
    const std::uint64_t values = part_values(part);
    if (values > left) {
      return bad_field(header_, HeaderField::value_count, "the sum of the part table");
    }
    left -= values;
  }
  if (left != 0) return bad_field(header_, HeaderField::value_count, "the sum of the part table");
  return {};
}

Status FrameView::check_index() const {
  const std::uint64_t size = dtype_size(header_.dtype);
  std::uint64_t total = 0;  // 2^32 lengths below 2^32 cannot overflow
  for (std::uint32_t index = 0; index < header_.block_count; ++index) {
    const BlockEntry entry = block(index);
    GRADWIRE_RETURN_IF_ERROR(check_entry(header_, index, entry));
    if (entry.kind == BlockKind::kStored && entry.length != block_values(index) * size) {
      return bad_entry(index, "length", entry.length, "the size of its values if stored");
    }
    total += entry.length;
  }
  if (total != header_.encoded_length - header_.header_length()) {
    return bad_field(header_, HeaderField::encoded_length,
                     "the header's length and the sum of the blocks' lengths");
  }
  return {};
}

BlockEntry FrameView::block(std::uint32_t index) const noexcept {
  const std::size_t offset = kHeaderBytes + kPartEntryBytes * std::size_t{header_.part_count} +
                             kBlockEntryBytes * std::size_t{index};
  return read_block_entry(frame_.subspan(offset).first<kBlockEntryBytes>());
}

std::uint64_t FrameView::block_values(std::uint32_t index) const noexcept {
  const std::uint64_t begin = std::uint64_t{index} * header_.block_values;
  const std::uint64_t left = header_.value_count - begin;
  return left < header_.block_values ? left : header_.block_values;
}

std::string_view FrameView::metadata() const noexcept {
  const auto end = static_cast<std::size_t>(header_.header_length());
  const std::span<const std::byte> bytes =
      frame_.subspan(end - header_.metadata_bytes, header_.metadata_bytes);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const std::byte> FrameView::blocks() const noexcept {
  return frame_.subspan(static_cast<std::size_t>(header_.header_length()));
}

}  // namespace gradwire::internal
