// Error feedback as bytes: docs/error_feedback.md has the layout.
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "collective/error_feedback_impl.h"
#include "core/byte_reader.h"
#include "core/byte_writer.h"
#include "core/checksum.h"
#include "core/status_macros.h"

namespace gradwire {
namespace {

using internal::feedback_error;

constexpr std::uint32_t kMagic = 0x46455747u;  // "GWEF"
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kHeadBytes = 4 + 4 + 4 + 4 + 8 + 8;
constexpr std::size_t kPartBytes = 4 + 4 + 8 + 8;
constexpr std::size_t kHashBytes = 8;

struct Head {
  std::uint32_t magic = kMagic;
  std::uint32_t version = kVersion;
  float beta = 0;
  float momentum = 0;
  std::uint64_t reset_interval = 0;
  std::uint64_t parts = 0;
};

struct PartHead {
  std::uint32_t tensor = 0;
  std::uint32_t dtype = 0;
  std::uint64_t first_index = 0;
  std::uint64_t values = 0;
};

// Of the head and of what a part begins with: `io(&field)` reads or writes each in turn.
template <typename Io>
bool each_field(Head& head, Io io) {
  return io(&head.magic) && io(&head.version) && io(&head.beta) && io(&head.momentum) &&
         io(&head.reset_interval) && io(&head.parts);
}
template <typename Io>
bool each_field(PartHead& part, Io io) {
  return io(&part.tensor) && io(&part.dtype) && io(&part.first_index) && io(&part.values);
}

Error truncated() {
  return feedback_error(ErrorCode::kTruncated, "", "the saved state ends too early");
}

Error settings_error(std::string field, std::string mine, std::string theirs) {
  Error error =
      feedback_error(ErrorCode::kInvalidArgument, field,
                     "the saved state has " + field + " " + theirs + ", this object has " + mine);
  error.mine = std::move(mine);
  error.theirs = std::move(theirs);
  return error;
}

Status check_head(const Head& head, const ErrorFeedbackSettings& settings) {
  const auto text = [](auto value) { return std::to_string(value); };
  if (head.beta != settings.beta) {
    return settings_error("beta", text(settings.beta), text(head.beta));
  }
  if (head.momentum != settings.momentum) {
    return settings_error("momentum", text(settings.momentum), text(head.momentum));
  }
  if (head.reset_interval != settings.reset_interval) {
    return settings_error("reset_interval", text(settings.reset_interval),
                          text(head.reset_interval));
  }
  return {};
}

// One part, whose bytes are hashed but may be anything.
Status load_part(internal::ByteReader& reader, ErrorFeedback& feedback) {
  PartHead part;
  if (!each_field(part, [&](auto* field) { return reader.read(field); })) return truncated();
  const bool has_momentum = feedback.settings().momentum != 0;
  const auto dtype = static_cast<DType>(part.dtype);
  if (part.dtype > 0xFF || (dtype != DType::kFloat32 && dtype != DType::kFloat64)) {
    return feedback_error(ErrorCode::kBadHeader, "dtype",
                          "residuals have type number " + std::to_string(part.dtype) +
                              ", must be float32 or float64");
  }
  const std::size_t size = dtype_size(dtype);
  if (part.values == 0) return feedback_error(ErrorCode::kBadHeader, "values", "a part is empty");
  if (part.values > reader.remaining() / size) return truncated();
  std::span<const std::byte> values;
  std::span<const std::byte> velocities;
  if (!reader.take(part.values * size, &values)) return truncated();
  if (has_momentum && !reader.take(part.values * size, &velocities)) return truncated();
  return feedback.restore({part.tensor,
                           part.first_index,
                           {values.data(), part.values, dtype},
                           {velocities.data(), velocities.size() / size, dtype}});
}

}  // namespace

Result<std::vector<std::byte>> ErrorFeedback::save() const {
  try {
    const std::vector<Residual> all = residuals();
    std::size_t size = kHeadBytes + kPartBytes * all.size() + kHashBytes;
    for (const Residual& residual : all) {
      size +=
          (residual.values.count + residual.velocities.count) * dtype_size(residual.values.dtype);
    }
    std::vector<std::byte> bytes(size);
    internal::ByteWriter writer(bytes);
    // Nothing here can fail: the size is the sum of what is written.
    const auto write = [&writer](auto* field) { return writer.write(*field); };
    Head head{kMagic,    kVersion, settings_.beta, settings_.momentum, settings_.reset_interval,
              all.size()};
    static_cast<void>(each_field(head, write));
    for (const Residual& residual : all) {
      const ConstTensorView& values = residual.values;
      PartHead part{residual.tensor, static_cast<std::uint32_t>(values.dtype), residual.first_index,
                    values.count};
      static_cast<void>(each_field(part, write));
      for (const ConstTensorView* view : {&residual.values, &residual.velocities}) {
        const auto* data = static_cast<const std::byte*>(view->data);
        static_cast<void>(writer.write_bytes({data, view->count * dtype_size(view->dtype)}));
      }
    }
    static_cast<void>(writer.write(internal::hash64(std::span(bytes).first(size - kHashBytes))));
    return bytes;
  } catch (const std::bad_alloc&) {
    return feedback_error(ErrorCode::kOutOfMemory, "", "no memory for the saved state");
  }
}

Status ErrorFeedback::load(std::span<const std::byte> bytes) {
  internal::ByteReader reader(bytes);
  Head head;
  if (!each_field(head, [&](auto* field) { return reader.read(field); })) return truncated();
  if (head.magic != kMagic) {
    return feedback_error(ErrorCode::kBadMagic, "magic", "these bytes are no saved state");
  }
  if (head.version != kVersion) {
    Error error = feedback_error(ErrorCode::kUnsupportedVersion, "version",
                                 "the saved state has version " + std::to_string(head.version) +
                                     ", this release reads version " + std::to_string(kVersion));
    error.mine = std::to_string(kVersion);
    error.theirs = std::to_string(head.version);
    return error;
  }
  if (reader.remaining() < kHashBytes) return truncated();
  const std::span<const std::byte> hashed = bytes.first(bytes.size() - kHashBytes);
  if (internal::load_le<std::uint64_t>(hashed.data() + hashed.size()) != internal::hash64(hashed)) {
    return feedback_error(ErrorCode::kBlockChecksum, "hash",
                          "the saved state is damaged or cut off");
  }
  GRADWIRE_RETURN_IF_ERROR(check_head(head, settings_));
  ErrorFeedback loaded(settings_);
  internal::ByteReader parts(hashed.subspan(kHeadBytes));
  for (std::uint64_t part = 0; part < head.parts; ++part) {
    GRADWIRE_RETURN_IF_ERROR(load_part(parts, loaded));
  }
  if (parts.remaining() != 0) {
    return feedback_error(ErrorCode::kTrailingBytes, "",
                          "the saved state has bytes behind its last part");
  }
  *this = std::move(loaded);
  return {};
}

}  // namespace gradwire
