#include "frame/limits.h"

#include <array>

namespace gradwire::internal {

std::string_view codec_name(CodecId codec) noexcept {
  switch (codec) {
    case CodecId::kNone:
      return "none";
    case CodecId::kCast:
      return "cast";
    case CodecId::kBlock:
      return "block";
    case CodecId::kLossless:
      return "lossless";
    case CodecId::kNearLossless:
      return "near_lossless";
  }
  return "unknown";
}

std::span<const DType> all_dtypes() noexcept {
  static constexpr std::array kAll = {
      DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16,   DType::kUInt8,
      DType::kInt8,    DType::kInt16,   DType::kInt32,   DType::kInt64,      DType::kUInt16,
      DType::kUInt32,  DType::kUInt64,  DType::kBool,    DType::kFloat8E4M3, DType::kFloat8E5M2};
  return kAll;
}

bool codec_takes(CodecId codec, DType dtype) noexcept {
  switch (codec) {
    case CodecId::kNone:
      return dtype_size(dtype) != 0;
    case CodecId::kCast:
      return dtype == DType::kFloat32 || dtype == DType::kFloat64;
    case CodecId::kBlock:
    case CodecId::kNearLossless:
      return dtype == DType::kFloat32;
    case CodecId::kLossless:
      return is_compressible(dtype);
  }
  return false;
}

}  // namespace gradwire::internal
