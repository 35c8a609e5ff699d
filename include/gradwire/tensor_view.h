// Element types and non-owning views of contiguous values in host memory.
#ifndef GRADWIRE_TENSOR_VIEW_H_
#define GRADWIRE_TENSOR_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gradwire {

// Numbers of docs/format.md. The four floating types can be compressed; the others travel
// unchanged (codec `none`) so that whole files keep their integer tensors.
enum class DType : std::uint8_t {
  kFloat32 = 1,
  kFloat64 = 2,
  kFloat16 = 3,
  kBFloat16 = 4,
  kUInt8 = 16,
  kInt8 = 17,
  kInt16 = 18,
  kInt32 = 19,
  kInt64 = 20,
  kUInt16 = 21,
  kUInt32 = 22,
  kUInt64 = 23,
  kBool = 24,
  kFloat8E4M3 = 25,
  kFloat8E5M2 = 26,
};

// Bytes of one value; 0 for a number that names no type.
std::size_t dtype_size(DType dtype) noexcept;
// "float32", "bfloat16", ...; "unknown" for a number that names no type.
std::string_view dtype_name(DType dtype) noexcept;
// True for float32, float64, float16 and bfloat16.
bool is_compressible(DType dtype) noexcept;

// `count` contiguous values of one type. Data needs no alignment. Not owned.
struct ConstTensorView {
  const void* data = nullptr;
  std::uint64_t count = 0;
  DType dtype = DType::kFloat32;
};

struct TensorView {
  void* data = nullptr;
  std::uint64_t count = 0;
  DType dtype = DType::kFloat32;

  operator ConstTensorView() const noexcept { return {data, count, dtype}; }
};

}  // namespace gradwire

#endif  // GRADWIRE_TENSOR_VIEW_H_
