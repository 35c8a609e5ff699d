// Encodes and decodes a tensor with nothing but the installed package.
#include <gradwire/codec.h>
#include <gradwire/collective.h>
#include <gradwire/status.h>
#include <gradwire/tensor_view.h>
#include <gradwire/transport.h>
#include <gradwire/version.h>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <span>
#include <vector>

namespace {

int fail(const char* what, const gradwire::Error& error) {
  std::fprintf(stderr, "consumer: %s: %s\n", what, error.to_string().c_str());
  return 1;
}

}  // namespace

int main() {
  std::vector<float> values(10'000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1e-3f * static_cast<float>(i % 97);

  auto spec = gradwire::CodecSpec::parse("none");
  if (!spec.ok()) return fail("parse", spec.error());

  const gradwire::Part part{{values.data(), values.size(), gradwire::DType::kFloat32}};
  const std::span<const gradwire::Part> parts(&part, 1);
  std::vector<std::byte> frame(
      gradwire::max_encoded_size(spec.value(), gradwire::DType::kFloat32, values.size(), 1));
  gradwire::Workspace workspace;
  auto length = gradwire::encode(spec.value(), parts, {}, frame, workspace);
  if (!length.ok()) return fail("encode", length.error());

  std::vector<float> decoded(values.size());
  const gradwire::TensorView view{decoded.data(), decoded.size(), gradwire::DType::kFloat32};
  const auto status = gradwire::decode(std::span(frame).first(length.value()),
                                       std::span<const gradwire::TensorView>(&view, 1), workspace);
  if (!status.ok()) return fail("decode", status.error());
  if (std::memcmp(values.data(), decoded.data(), values.size() * sizeof(float)) != 0) {
    std::fprintf(stderr, "consumer: the decoded values differ\n");
    return 1;
  }
  std::printf("gradwire %s: %zu values in %zu bytes and back\n", GRADWIRE_VERSION_STRING,
              values.size(), length.value());
  return 0;
}
