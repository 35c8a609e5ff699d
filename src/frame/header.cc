#include "frame/header.h"

#include <bit>
#include <charconv>
#include <type_traits>

#include "frame/limits.h"

namespace gradwire::internal {
namespace {

// The list leaves no gap, overlaps nothing and ends at byte 128.
constexpr bool fields_fill_header() noexcept {
  FrameHeader header;
  std::size_t end = 0;
  bool contiguous = true;
  visit_header(header, [&]<typename T>(HeaderField, std::size_t offset, std::string_view, T&) {
    contiguous = contiguous && offset == end;
    end = offset + sizeof(T);
  });
  return contiguous && end == kHeaderBytes;
}
static_assert(fields_fill_header());

// The name, or the number of what has none.
template <typename Enum>
std::string named(std::string_view name, Enum value) {
  if (name == "unknown") return std::to_string(static_cast<unsigned>(value));
  return std::string(name);
}

std::string text_of(Op op) { return named(op_name(op), op); }
std::string text_of(Phase phase) { return named(phase_name(phase), phase); }
std::string text_of(Reduction reduction) { return named(reduction_name(reduction), reduction); }
std::string text_of(Schedule schedule) { return named(schedule_name(schedule), schedule); }
std::string text_of(Rounding rounding) {
  return named(rounding == Rounding::kNearest      ? "nearest"
               : rounding == Rounding::kStochastic ? "stochastic"
                                                   : "unknown",
               rounding);
}
std::string text_of(Coder coder) { return named(coder_name(coder), coder); }
std::string text_of(BoundScale scale) { return named(scale_name(scale), scale); }
std::string text_of(BoundOptions options) {
  const auto bits = static_cast<unsigned>(options);
  if (bits > kAllBoundOptions) return std::to_string(bits);
  const bool filter = has_option(options, BoundOptions::kFilter);
  const bool per_part = has_option(options, BoundOptions::kPerPart);
  if (filter && per_part) return "filter, group=tensor";
  return filter ? "filter" : per_part ? "group=tensor" : "none";
}
std::string text_of(CodecId codec) { return named(codec_name(codec), codec); }
std::string text_of(DType dtype) {
  if (dtype == DType{0}) return "none";
  return named(dtype_name(dtype), dtype);
}
std::string text_of(double value) {
  char text[32];  // the shortest form that reads back as the same number has at most 24
  const auto end = std::to_chars(text, text + sizeof(text), value);
  return std::string(text, end.ptr);
}
template <typename T>
requires std::is_integral_v<T> std::string text_of(T value) { return std::to_string(value); }

template <typename T>
bool same_bits(const T& a, const T& b) noexcept {
  if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
  } else {
    return a == b;
  }
}

}  // namespace

std::string header_field_text(const FrameHeader& header, HeaderField wanted) {
  std::string text;
  visit_header(header, [&](HeaderField field, std::size_t, std::string_view, const auto& value) {
    if (field == wanted) text = text_of(value);
  });
  return text;
}

std::string_view header_field_name(HeaderField wanted) noexcept {
  std::string_view found;
  constexpr FrameHeader kAnyHeader;
  visit_header(kAnyHeader, [&](HeaderField field, std::size_t, std::string_view name, const auto&) {
    if (field == wanted) found = name;
  });
  return found;
}

std::optional<FieldDifference> compare_headers(const FrameHeader& mine, const FrameHeader& theirs,
                                               HeaderFieldSet fields) {
  std::optional<HeaderField> different;
#define GRADWIRE_HEADER_COMPARE(offset, type, name)                                             \
  if (!different && fields.contains(HeaderField::name) && !same_bits(mine.name, theirs.name)) { \
    different = HeaderField::name;                                                              \
  }
  GRADWIRE_HEADER_FIELDS(GRADWIRE_HEADER_COMPARE)
#undef GRADWIRE_HEADER_COMPARE
  if (!different) return std::nullopt;
  return FieldDifference{header_field_name(*different), header_field_text(mine, *different),
                         header_field_text(theirs, *different)};
}

}  // namespace gradwire::internal
