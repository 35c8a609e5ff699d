#include "gradwire/tensor_view.h"

namespace gradwire {
namespace {

struct DTypeRow {
  std::size_t size = 0;
  std::string_view name = "unknown";
};

// One row per type; the default row for a number that names none.
constexpr DTypeRow row(DType dtype) noexcept {
  switch (dtype) {
    case DType::kFloat32:
      return {4, "float32"};
    case DType::kFloat64:
      return {8, "float64"};
    case DType::kFloat16:
      return {2, "float16"};
    case DType::kBFloat16:
      return {2, "bfloat16"};
    case DType::kUInt8:
      return {1, "uint8"};
    case DType::kInt8:
      return {1, "int8"};
    case DType::kInt16:
      return {2, "int16"};
    case DType::kInt32:
      return {4, "int32"};
    case DType::kInt64:
      return {8, "int64"};
    case DType::kUInt16:
      return {2, "uint16"};
    case DType::kUInt32:
      return {4, "uint32"};
    case DType::kUInt64:
      return {8, "uint64"};
    case DType::kBool:
      return {1, "bool"};
    case DType::kFloat8E4M3:
      return {1, "float8_e4m3"};
    case DType::kFloat8E5M2:
      return {1, "float8_e5m2"};
  }
  return {};
}

}  // namespace

std::size_t dtype_size(DType dtype) noexcept { return row(dtype).size; }

std::string_view dtype_name(DType dtype) noexcept { return row(dtype).name; }

bool is_compressible(DType dtype) noexcept {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kFloat16 ||
         dtype == DType::kBFloat16;
}

}  // namespace gradwire
