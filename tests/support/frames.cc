#include "support/frames.h"

#include <gtest/gtest.h>

namespace gradwire::test {

std::vector<Part> make_parts(std::span<const std::byte> values, DType dtype,
                             std::span<const std::uint64_t> counts) {
  std::vector<Part> parts;
  std::size_t at = 0;
  for (const std::uint64_t count : counts) {
    const std::size_t size = static_cast<std::size_t>(count) * dtype_size(dtype);
    Part part;
    part.values = {values.subspan(at, size).data(), count, dtype};
    part.tensor = static_cast<std::uint32_t>(parts.size());
    parts.push_back(part);
    at += size;
  }
  return parts;
}

Result<Bytes> encode_frame(const CodecSpec& spec, std::span<const Part> parts,
                           const EncodeOptions& options, Workspace& workspace) {
  std::uint64_t values = 0;
  for (const Part& part : parts) values += part.values.count;
  const DType dtype = parts.empty() ? DType::kFloat32 : parts.front().values.dtype;
  Bytes frame(static_cast<std::size_t>(
      max_encoded_size(spec, dtype, values, parts.size(), options.metadata.size())));
  const Result<std::size_t> length = encode(spec, parts, options, frame, workspace);
  if (!length.ok()) return length.error();
  EXPECT_LE(*length, frame.size());
  frame.resize(*length);
  frame.shrink_to_fit();
  return frame;
}

Result<Bytes> decode_frame(std::span<const std::byte> frame, Workspace& workspace,
                           std::uint64_t most_values) {
  const Result<FrameInfo> info = inspect(frame);
  if (!info.ok()) return info.error();
  if (info->value_count > most_values) {
    Error error;
    error.code = ErrorCode::kShapeMismatch;
    return error;
  }
  const std::size_t size = dtype_size(info->dtype);
  std::vector<Bytes> buffers;
  std::vector<TensorView> views;
  for (const std::uint64_t count : info->part_counts) {
    buffers.emplace_back(static_cast<std::size_t>(count) * size);
    views.push_back({buffers.back().data(), count, info->dtype});
  }
  const Status status = decode(frame, views, workspace);
  if (!status.ok()) return status.error();
  Bytes values;
  for (const Bytes& buffer : buffers) values.insert(values.end(), buffer.begin(), buffer.end());
  return values;
}

}  // namespace gradwire::test
