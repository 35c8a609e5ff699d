#include <gtest/gtest.h>

#include <map>
#include <string>

#include "gradwire/tensor_view.h"

namespace gradwire {
namespace {

TEST(DType, SizesAndNamesOfAllNumbers) {
  const std::map<int, std::pair<std::string, std::size_t>> known = {
      {1, {"float32", 4}}, {2, {"float64", 8}},      {3, {"float16", 2}},     {4, {"bfloat16", 2}},
      {16, {"uint8", 1}},  {17, {"int8", 1}},        {18, {"int16", 2}},      {19, {"int32", 4}},
      {20, {"int64", 8}},  {21, {"uint16", 2}},      {22, {"uint32", 4}},     {23, {"uint64", 8}},
      {24, {"bool", 1}},   {25, {"float8_e4m3", 1}}, {26, {"float8_e5m2", 1}}};
  for (int number = 0; number < 256; ++number) {
    const auto dtype = static_cast<DType>(number);
    const auto row = known.find(number);
    EXPECT_EQ(dtype_name(dtype), row == known.end() ? "unknown" : row->second.first) << number;
    EXPECT_EQ(dtype_size(dtype), row == known.end() ? 0 : row->second.second) << number;
    EXPECT_EQ(is_compressible(dtype), number >= 1 && number <= 4) << number;
  }
}

TEST(DType, ViewOfWritableValuesReads) {
  float values[3] = {};
  const TensorView view{values, 3, DType::kFloat32};
  const ConstTensorView reading = view;
  EXPECT_EQ(reading.data, values);
  EXPECT_EQ(reading.count, 3u);
  EXPECT_EQ(reading.dtype, DType::kFloat32);
}

}  // namespace
}  // namespace gradwire
