// Every codec example of the registry with every type it takes, and short ways to run them.
#ifndef GRADWIRE_TESTS_SUPPORT_CODEC_CASES_H_
#define GRADWIRE_TESTS_SUPPORT_CODEC_CASES_H_

#include <gtest/gtest.h>

#include <cctype>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gradwire/codec.h"
#include "support/tensor.h"

namespace gradwire::test {

using Bytes = std::vector<std::byte>;

inline CodecSpec spec_of(std::string_view text) {
  Result<CodecSpec> spec = CodecSpec::parse(text);
  EXPECT_TRUE(spec.ok()) << text << ": " << (spec.ok() ? "" : spec.error().to_string());
  return spec.ok() ? *spec : CodecSpec{};
}

inline std::vector<Part> parts_of(const std::vector<Tensor>& tensors) {
  std::vector<Part> parts;
  for (const Tensor& tensor : tensors) {
    parts.push_back({.values = tensor.view(),
                     .tensor = static_cast<std::uint32_t>(parts.size()),
                     .first_index = 0});
  }
  return parts;
}

// The frame of these tensors; fails the test and returns nothing on an error. Without a workspace
// it is a new one.
inline Bytes encode_tensors(const CodecSpec& spec, const std::vector<Tensor>& tensors,
                            const EncodeOptions& options = {}, EncodeStats* stats = nullptr,
                            Workspace* workspace = nullptr) {
  std::uint64_t values = 0;
  for (const Tensor& tensor : tensors) values += tensor.count;
  const DType dtype = tensors.empty() ? DType::kFloat32 : tensors[0].dtype;
  Bytes frame(static_cast<std::size_t>(
      max_encoded_size(spec, dtype, values, tensors.size(), options.metadata.size())));
  Workspace new_one;
  const Result<std::size_t> length = encode(spec, parts_of(tensors), options, frame,
                                            workspace != nullptr ? *workspace : new_one, stats);
  EXPECT_TRUE(length.ok()) << (length.ok() ? "" : length.error().to_string());
  frame.resize(length.ok() ? *length : 0);
  return frame;
}

// Tensors of the same shape, filled with a pattern that a decoder has to overwrite.
inline std::vector<Tensor> like(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> copies;
  for (const Tensor& tensor : tensors) {
    copies.emplace_back(tensor.dtype, tensor.count);
    for (std::byte& byte : copies.back().bytes) byte = std::byte{0xA5};
  }
  return copies;
}

inline std::vector<TensorView> views_of(std::vector<Tensor>* tensors) {
  std::vector<TensorView> views;
  for (Tensor& tensor : *tensors) views.push_back(tensor.view());
  return views;
}

inline Status decode_into(std::span<const std::byte> frame, std::vector<Tensor>* tensors) {
  Workspace workspace;
  return decode(frame, views_of(tensors), workspace);
}

// The codec's values of these tensors: decode(encode(x)).
inline std::vector<Tensor> round_trip(const CodecSpec& spec, const std::vector<Tensor>& tensors) {
  const Bytes frame = encode_tensors(spec, tensors);
  std::vector<Tensor> decoded = like(tensors);
  const Status status = decode_into(frame, &decoded);
  EXPECT_TRUE(status.ok()) << spec.to_string() << ": "
                           << (status.ok() ? "" : status.error().to_string());
  return decoded;
}

// One codec example with one of the types that the codec takes.
struct CodecCase {
  std::string spec;
  DType dtype = DType::kFloat32;
};

// Every example of the registry with every type of its codec.
inline std::vector<CodecCase> codec_cases() {
  std::vector<CodecCase> cases;
  for (const CodecDescription& codec : codecs()) {
    for (const std::string_view example : codec.examples) {
      for (const DType dtype : codec.dtypes) cases.push_back({std::string(example), dtype});
    }
  }
  return cases;
}

// Those with floating values.
inline std::vector<CodecCase> floating_cases() {
  std::vector<CodecCase> cases = codec_cases();
  std::erase_if(cases, [](const CodecCase& one) { return !is_compressible(one.dtype); });
  return cases;
}

// For INSTANTIATE_TEST_SUITE_P: letters and digits only.
inline std::string case_name(const CodecCase& codec_case) {
  std::string name = codec_case.spec + "_" + std::string(dtype_name(codec_case.dtype));
  for (char& letter : name) {
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0) letter = '_';
  }
  return name;
}

inline void PrintTo(const CodecCase& codec_case, std::ostream* out) {
  *out << case_name(codec_case);
}

}  // namespace gradwire::test

#endif  // GRADWIRE_TESTS_SUPPORT_CODEC_CASES_H_
