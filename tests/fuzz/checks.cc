#include "fuzz/checks.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "fuzz/uninitialized.h"

namespace gradwire::test {
namespace {

// Frames that say more are not given a destination of their size.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 19;
constexpr std::size_t kMostParts = 16;

void require(bool holds, const char* what, const Error* error = nullptr) {
  if (holds) return;
  std::fprintf(stderr, "breach: %s%s%s\n", what, error != nullptr ? ": " : "",
               error != nullptr ? error->to_string().c_str() : "");
  std::abort();
}

// An error that bytes can cause; `destination`: a destination can, too.
void require_byte_error(const Error& error, bool destination) {
  const bool bytes = error.code >= ErrorCode::kTruncated && error.code <= ErrorCode::kCorruptBlock;
  const bool shape = destination && error.code == ErrorCode::kShapeMismatch;
  require(bytes || shape, "an error that bytes cannot cause", &error);
  require(!error.message.empty(), "an error without a text", &error);
}

bool small_enough(const FrameInfo& info) {
  return info.part_counts.size() <= kMostParts &&
         info.value_count <= kMostBytes / dtype_size(info.dtype);
}

// Empty where there is not so much memory.
std::vector<TensorView> destination(const FrameInfo& info, DType dtype, Buffers& buffers) {
  std::vector<TensorView> views;
  views.reserve(info.part_counts.size());
  for (const std::uint64_t count : info.part_counts) {
    std::byte* const data = buffers.take(static_cast<std::size_t>(count) * dtype_size(dtype));
    if (data == nullptr) return {};
    views.push_back({data, count, dtype});
  }
  return views;
}

std::size_t view_bytes(const TensorView& view) {
  return static_cast<std::size_t>(view.count) * dtype_size(view.dtype);
}

void require_written(std::span<const TensorView> views) {
  for (const TensorView& view : views) {
    require(all_written(view.data, view_bytes(view)), "a decoded value was not written");
  }
}

// Decodes again over other bytes: nothing may depend on what was there.
void check_again(std::span<const std::byte> bytes, const FrameInfo& info,
                 std::span<const TensorView> first, Buffers& buffers, Workspace& workspace) {
  const std::vector<TensorView> second = destination(info, info.dtype, buffers);
  if (second.size() != first.size()) return;
  for (const TensorView& view : second) std::memset(view.data, 0xA5, view_bytes(view));
  require(decode(bytes, second, workspace).ok(), "decoded once, refused the second time");
  for (std::size_t i = 0; i < first.size(); ++i) {
    require(std::memcmp(first[i].data, second[i].data, view_bytes(first[i])) == 0,
            "two decodes differ");
  }
}

// Each part alone is what it was with the others; where a block is bad, at least one part is.
void check_parts(std::span<const std::byte> bytes, const FrameInfo& info, bool decodes,
                 std::span<const TensorView> whole, Buffers& buffers, Workspace& workspace) {
  bool all = true;
  for (std::uint32_t index = 0; index < whole.size(); ++index) {
    std::byte* const data = buffers.take(view_bytes(whole[index]));
    if (data == nullptr) return;
    const TensorView part{data, whole[index].count, info.dtype};
    const Status status = decode_part(bytes, index, part, workspace);
    all = all && status.ok();
    if (!status.ok()) {
      require_byte_error(status.error(), false);
    } else if (decodes) {
      require(std::memcmp(data, whole[index].data, view_bytes(part)) == 0,
              "a part alone has other values");
    }
  }
  require(all == decodes, "decode() and decode_part() do not agree");
}

void check_add(std::span<const std::byte> bytes, const FrameInfo& info, bool decodes,
               Buffers& buffers, Workspace& workspace) {
  const bool wide = info.dtype == DType::kFloat64;
  const DType dtype = wide ? DType::kFloat64 : DType::kFloat32;
  buffers.release_all();
  const std::vector<TensorView> sums = destination(info, dtype, buffers);
  if (sums.size() != info.part_counts.size()) return;
  for (const TensorView& view : sums) std::memset(view.data, 0, view_bytes(view));
  const Status status = decode_add(bytes, sums, workspace);
  if (!is_compressible(info.dtype)) {
    require(!status.ok() && status.error().code == ErrorCode::kUnsupportedDType,
            "integers were added");
    return;
  }
  require(status.ok() == decodes, "decode() and decode_add() do not agree",
          status.ok() ? nullptr : &status.error());
  if (status.ok()) require_written(sums);
}

}  // namespace

std::byte* HeapBuffers::take(std::size_t bytes) {
  // Not zeroed: MemorySanitizer is to see what the decoder leaves out.
  buffers_.push_back(std::make_unique_for_overwrite<std::byte[]>(bytes));
  return buffers_.back().get();
}

Result<FrameInfo> check_inspect(std::span<const std::byte> bytes) {
  Result<FrameInfo> info = inspect(bytes);
  if (!info.ok()) {
    require_byte_error(info.error(), false);
    return info;
  }
  std::uint64_t values = 0, block_bytes = 0, block_values = 0;
  for (const std::uint64_t count : info->part_counts) values += count;
  for (const BlockInfo& block : info->blocks) {
    block_bytes += block.length;
    block_values += block.values;
  }
  require(values == info->value_count && block_values == values, "values do not add up");
  require(info->header_length + block_bytes == info->encoded_length, "lengths do not add up");
  require(info->encoded_length == bytes.size(), "not the length of the bytes");
  return info;
}

int check_decode(std::span<const std::byte> bytes, bool thorough, Buffers& buffers,
                 Workspace& workspace) {
  buffers.release_all();
  const Result<FrameInfo> info = check_inspect(bytes);
  if (!info.ok()) {
    if (thorough) {
      const Status verified = verify(bytes);
      require(!verified.ok() && verified.error().code == info.error().code,
              "inspect() and verify() do not agree");
    }
    return static_cast<int>(info.error().code);
  }
  std::vector<TensorView> views;
  if (small_enough(*info)) views = destination(*info, info->dtype, buffers);
  const bool fits = views.size() == info->part_counts.size();
  const Status status = decode(bytes, views, workspace);
  if (!status.ok()) require_byte_error(status.error(), !fits);
  require(fits || !status.ok(), "decoded without a destination");
  if (status.ok()) require_written(views);
  if (thorough) {
    const Result<std::uint64_t> length = frame_length(bytes);
    require(length.ok() && *length == bytes.size(), "frame_length() is another");
    if (status.ok()) {
      require(verify(bytes).ok(), "decoded, but verify() refuses");
      check_again(bytes, *info, views, buffers, workspace);
    }
    if (fits) check_parts(bytes, *info, status.ok(), views, buffers, workspace);
    if (fits) check_add(bytes, *info, status.ok(), buffers, workspace);
  }
  return status.ok() ? 0 : static_cast<int>(status.error().code);
}

void check_spec(std::string_view text) {
  const Result<CodecSpec> spec = CodecSpec::parse(text);
  if (!spec.ok()) {
    require(spec.error().code <= ErrorCode::kOutOfRange, "an error that a text cannot cause",
            &spec.error());
    require(!spec.error().message.empty(), "an error without a text", &spec.error());
    return;
  }
  const Result<CodecSpec> again = CodecSpec::parse(spec->to_string());
  require(again.ok() && *again == *spec, "to_string() gives another spec");
  static_cast<void>(max_encoded_size(*spec, DType::kFloat32, ~std::uint64_t{0}, 1));
}

}  // namespace gradwire::test
