// The public functions of gradwire/codec.h around the pipeline.
#include <algorithm>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include "codec/errors.h"
#include "codec/pipeline.h"
#include "codec/registry.h"
#include "codec/workspace.h"
#include "core/status_macros.h"
#include "frame/frame_reader.h"

namespace gradwire {
namespace {

using internal::FrameView;
using internal::without_bad_alloc;

std::uint64_t add_saturated(std::uint64_t a, std::uint64_t b) noexcept {
  return a > std::numeric_limits<std::uint64_t>::max() - b
             ? std::numeric_limits<std::uint64_t>::max()
             : a + b;
}

std::uint64_t multiply_saturated(std::uint64_t a, std::uint64_t b) noexcept {
  return b != 0 && a > std::numeric_limits<std::uint64_t>::max() / b
             ? std::numeric_limits<std::uint64_t>::max()
             : a * b;
}

std::string_view kind_name(internal::BlockKind kind) noexcept {
  switch (kind) {
    case internal::BlockKind::kStored:
      return "stored";
    case internal::BlockKind::kCoded:
      return "coded";
    case internal::BlockKind::kFixed:
      return "fixed";
  }
  return "unknown";
}

FrameInfo describe(const FrameView& frame) {
  const internal::FrameHeader& header = frame.header();
  FrameInfo info;
  info.version = header.version;
  info.dtype = header.dtype;
  info.codec = internal::header_spec(header);
  info.context = internal::header_context(header);
  info.value_count = header.value_count;
  info.header_length = header.header_length();
  info.encoded_length = header.encoded_length;
  info.part_counts.reserve(header.part_count);
  for (std::uint32_t i = 0; i < header.part_count; ++i) {
    info.part_counts.push_back(frame.part_values(i));
  }
  info.blocks.reserve(header.block_count);
  for (std::uint32_t i = 0; i < header.block_count; ++i) {
    const internal::BlockEntry entry = frame.block(i);
    info.blocks.push_back({.values = frame.block_values(i),
                           .length = entry.length,
                           .kind = kind_name(entry.kind),
                           .lanes = entry.lanes,
                           .plane_bytes = entry.plane_bytes,
                           .own_table = (entry.flags & internal::kBlockFlagOwnTable) != 0,
                           .outliers = entry.outlier_count});
  }
  info.metadata = frame.metadata();
  return info;
}

}  // namespace

Workspace::Workspace() noexcept = default;
Workspace::~Workspace() = default;
Workspace::Workspace(Workspace&&) noexcept = default;
Workspace& Workspace::operator=(Workspace&&) noexcept = default;

Workspace::Impl& Workspace::impl() {
  if (impl_ == nullptr) impl_ = std::make_unique<Impl>();
  return *impl_;
}

Status Workspace::set_threads(unsigned threads) {
  constexpr unsigned kMost = 256;
  if (threads > kMost) {
    return internal::make_error(ErrorCode::kOutOfRange, "threads", std::to_string(threads),
                                "threads is " + std::to_string(threads) + ", must be 0 to 256");
  }
  if (threads == 0) threads = std::min(internal::allowed_cpus(), kMost);
  return without_bad_alloc([&]() -> Status {
    if (threads == this->threads()) return {};
    try {
      std::unique_ptr<internal::ThreadPool> pool;
      if (threads > 1) pool = std::make_unique<internal::ThreadPool>(threads);
      impl().pool = std::move(pool);
    } catch (const std::system_error&) {
      throw std::bad_alloc();
    }
    return {};
  });
}

unsigned Workspace::threads() const noexcept {
  return impl_ == nullptr || impl_->pool == nullptr ? 1 : impl_->pool->threads();
}

std::uint64_t max_encoded_size(const CodecSpec& spec, DType dtype, std::uint64_t value_count,
                               std::uint64_t part_count, std::uint64_t metadata_bytes) {
  const std::uint64_t per_block = spec.block_values == 0 ? 1 : spec.block_values;
  const std::uint64_t blocks = value_count / per_block + (value_count % per_block != 0 ? 1 : 0);
  std::uint64_t size = add_saturated(internal::kHeaderBytes, metadata_bytes);
  size = add_saturated(size, multiply_saturated(internal::kPartEntryBytes, part_count));
  size = add_saturated(size, multiply_saturated(internal::kBlockEntryBytes, blocks));
  return add_saturated(size, multiply_saturated(dtype_size(dtype), value_count));
}

Result<std::size_t> encode(const CodecSpec& spec, std::span<const Part> parts,
                           const EncodeOptions& options, std::span<std::byte> out,
                           Workspace& workspace, EncodeStats* stats) {
  return without_bad_alloc([&] {
    const DType dtype = parts.empty() ? DType::kFloat32 : parts[0].values.dtype;
    return internal::encode_frame(spec, dtype, parts, options, out, workspace, stats);
  });
}

Result<std::uint64_t> frame_length(std::span<const std::byte> bytes) {
  return without_bad_alloc([&] { return internal::read_frame_length(bytes); });
}

Result<FrameInfo> inspect(std::span<const std::byte> frame) {
  return without_bad_alloc([&]() -> Result<FrameInfo> {
    GRADWIRE_ASSIGN_OR_RETURN(const FrameView view, FrameView::open(frame));
    return describe(view);
  });
}

Status verify(std::span<const std::byte> frame) {
  return without_bad_alloc([&]() -> Status {
    GRADWIRE_ASSIGN_OR_RETURN(const FrameView view, FrameView::open(frame));
    return internal::verify_blocks(view);
  });
}

Status decode(std::span<const std::byte> frame, std::span<const TensorView> parts,
              Workspace& workspace) {
  return without_bad_alloc([&]() -> Status {
    GRADWIRE_ASSIGN_OR_RETURN(const FrameView view, FrameView::open(frame));
    return internal::decode_frame(view, parts, workspace);
  });
}

Status decode_part(std::span<const std::byte> frame, std::uint32_t index, const TensorView& part,
                   Workspace& workspace) {
  return without_bad_alloc([&]() -> Status {
    GRADWIRE_ASSIGN_OR_RETURN(const FrameView view, FrameView::open(frame));
    return internal::decode_part_frame(view, index, part, workspace);
  });
}

Status decode_add(std::span<const std::byte> frame, std::span<const TensorView> accumulators,
                  Workspace& workspace) {
  return without_bad_alloc([&]() -> Status {
    GRADWIRE_ASSIGN_OR_RETURN(const FrameView view, FrameView::open(frame));
    return internal::decode_add_frame(view, accumulators, workspace);
  });
}

}  // namespace gradwire
