// The one place where stages meet: parts are split into blocks and pieces, each block goes
// through the codec of the registry, and the frame layer puts index, hashes and header around.
//
// The public API is built on this; the collective layer uses it where it needs the header of a
// frame as well, or frames without values.
#ifndef GRADWIRE_CODEC_PIPELINE_H_
#define GRADWIRE_CODEC_PIPELINE_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "codec/block_codec.h"
#include "frame/frame_reader.h"
#include "frame/header.h"

namespace gradwire::internal {

// The header's fields that follow from these three; lengths and counts are zero. What a frame of
// a peer is compared with.
FrameHeader make_header(const CodecSpec& spec, DType dtype, const FrameContext& context);

// The parameters in a header, as make_header() wrote them.
CodecSpec header_spec(const FrameHeader& header);
FrameContext header_context(const FrameHeader& header);

// encode() for a known dtype, so that a frame without parts (an error frame) can say one. Errors
// as encode(). May throw std::bad_alloc.
Result<std::size_t> encode_frame(const CodecSpec& spec, DType dtype, std::span<const Part> parts,
                                 const EncodeOptions& options, std::span<std::byte> out,
                                 Workspace& workspace, EncodeStats* stats);

// decode(), decode_part() and decode_add() of a frame that has been opened. Errors and exceptions
// as above.
Status decode_frame(const FrameView& frame, std::span<const TensorView> parts,
                    Workspace& workspace);
Status decode_part_frame(const FrameView& frame, std::uint32_t index, const TensorView& part,
                         Workspace& workspace);
Status decode_add_frame(const FrameView& frame, std::span<const TensorView> accumulators,
                        Workspace& workspace);

// kBlockChecksum for the first block whose hash is wrong.
Status verify_blocks(const FrameView& frame);

}  // namespace gradwire::internal

#endif  // GRADWIRE_CODEC_PIPELINE_H_
