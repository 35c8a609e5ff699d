// Frames for tests, from values and back.
#ifndef GRADWIRE_TESTS_SUPPORT_FRAMES_H_
#define GRADWIRE_TESTS_SUPPORT_FRAMES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gradwire/codec.h"

namespace gradwire::test {

using Bytes = std::vector<std::byte>;

// Parts of `counts` values each that lie one after the other in `values`; tensor: their number.
std::vector<Part> make_parts(std::span<const std::byte> values, DType dtype,
                             std::span<const std::uint64_t> counts);

// encode() into a buffer of max_encoded_size(), cut to the frame.
Result<Bytes> encode_frame(const CodecSpec& spec, std::span<const Part> parts,
                           const EncodeOptions& options, Workspace& workspace);

// decode() of any frame into buffers of its own: the values of all parts, one after the other.
// kShapeMismatch for more than `most_values` values.
Result<Bytes> decode_frame(std::span<const std::byte> frame, Workspace& workspace,
                           std::uint64_t most_values = std::uint64_t{1} << 24);

}  // namespace gradwire::test

#endif  // GRADWIRE_TESTS_SUPPORT_FRAMES_H_
