// Encode tensors into a frame (docs/format.md) and back.
//
// All functions are thread safe as long as each thread has its own Workspace. Same values,
// codec and context give the same bytes on every machine and thread count.
#ifndef GRADWIRE_CODEC_H_
#define GRADWIRE_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gradwire/frame.h"
#include "gradwire/status.h"
#include "gradwire/tensor_view.h"

namespace gradwire {

// A codec with its parameters. Text form: `name` or `name:key=value,key=value`, the same in
// C++, Python and the command line; `int8`, `int4`, `fine`, `unbiased`, `coarse`, `compso` name
// codecs with parameters. Equal specs on two ranks encode the same values to the same bytes (apart
// from the sender's noise and header).
struct CodecSpec {
  CodecId id = CodecId::kNone;
  std::uint32_t group = 0;      // values that share a scale; 0: the codec has none
  double step = 0;              // near_lossless: step / RMS of the group; 0: mantissa form
                                // terngrad: clip; top_k, cocktail: fraction that is kept
  double bound = 0;             // error_bounded: largest error / scale
  std::uint8_t mantissa = 0;    // near_lossless: mantissa bits kept; 0: step form
  std::uint8_t bits = 0;        // block, qsgd, hadamard, cocktail: bits per value
  DType cast_dtype = DType{0};  // cast, top_k, mxfp8: what the values become
  Rounding rounding = Rounding::kNearest;
  BoundScale scale = BoundScale::kNone;        // error_bounded
  BoundOptions options = BoundOptions::kNone;  // error_bounded; kPerPart goes with group 4096
  Coder coder = Coder::kNone;                  // coded codecs: kHuffman encodes faster
  std::uint64_t seed = 0;                      // stochastic rounding
  std::uint32_t variant = 0;            // qsgd: 1 max norm + 2 Elias codes; cocktail: 1 / sampled
  std::uint32_t block_values = 262144;  // values per block; each block decodes alone

  // Errors: kUnknownCodec, kUnknownParameter (the message lists the valid ones), kOutOfRange
  // (field, value, range), kInvalidArgument (a parameter twice, without a value, or excluded by
  // another).
  static Result<CodecSpec> parse(std::string_view text);
  // Canonical text: parse(to_string()) is the same spec.
  std::string to_string() const;
  bool operator==(const CodecSpec&) const = default;
};

// One line per codec of the registry.
struct CodecDescription {
  CodecId id;
  std::string_view name;
  std::string_view summary;
  std::string_view parameters;             // "step=X, mantissa=M, group=N, block=N"
  std::string_view bound;                  // error bound in words
  std::vector<DType> dtypes;               // what it encodes
  std::vector<std::string_view> examples;  // specs used by tests, golden frames and bench
};
std::span<const CodecDescription> codecs();
// Instruction set of the vector kernels in use: "avx512_vbmi2", "avx512", "avx2", "neon",
// "portable". All give the same bytes. The environment variable GRADWIRE_TARGET, read at the first
// use, forces a lesser one.
std::string_view simd_target() noexcept;
// kUnsupportedDType if `spec` cannot encode `dtype`.
Status check_dtype(const CodecSpec& spec, DType dtype);

// One parameter, or a piece of one. Its groups are its own. `tensor` and `first_index` (index
// of the first value inside the parameter) only choose the noise of stochastic rounding.
struct Part {
  ConstTensorView values;
  std::uint32_t tensor = 0;
  std::uint64_t first_index = 0;
};

struct EncodeOptions {
  FrameContext context;
  std::string_view metadata;  // opaque text kept in the frame (files: names and shapes as JSON)
};

// Scratch memory that calls reuse, so that steady use allocates nothing, and the threads that share
// the blocks of a frame. One Workspace per calling thread. Empty until the first call, and again
// when moved from.
class Workspace {
 public:
  Workspace() noexcept;
  ~Workspace();
  Workspace(Workspace&&) noexcept;
  Workspace& operator=(Workspace&&) noexcept;

  // From now on encode(), decode() and decode_add() spread the blocks of a frame over that many
  // threads, the calling one included; 1 at first, 0: as many as this process has CPUs. They are
  // made here and end with the Workspace. Same bytes, values and errors for every number. A frame
  // of one block, or of less than 256 KiB of values for each thread, takes fewer. After a fork()
  // the child works on the calling thread alone.
  // Errors, after which the number is as before: kOutOfRange (more than 256), kOutOfMemory (the
  // system gives no more threads).
  Status set_threads(unsigned threads);
  unsigned threads() const noexcept;

  struct Impl;
  Impl& impl();  // may throw std::bad_alloc

 private:
  std::unique_ptr<Impl> impl_;
};

// Encoded blocks by kind, and outliers, of one encode() call.
struct EncodeStats {
  std::uint64_t blocks_stored = 0;
  std::uint64_t blocks_coded = 0;
  std::uint64_t blocks_fixed = 0;
  std::uint64_t own_tables = 0;  // coded blocks that hold a table of their own
  std::uint64_t outliers = 0;
};

// Bytes that encode() may need at most: 128 + 8 parts + 32 blocks + metadata + raw bytes.
std::uint64_t max_encoded_size(const CodecSpec& spec, DType dtype, std::uint64_t value_count,
                               std::uint64_t part_count, std::uint64_t metadata_bytes = 0);

// Encodes `parts` (all of one dtype) as one frame into `out`; returns the frame's length. Bytes of
// `out` behind the frame, up to max_encoded_size, may have been written too.
// Without parts the frame's dtype is float32.
// Errors: kUnknownCodec and kOutOfRange (a spec that parse() would not give), kUnsupportedDType,
// kInvalidArgument (parts of different dtype, a null pointer, a context out of range),
// kBufferTooSmall (out is smaller than max_encoded_size), kOutOfMemory.
Result<std::size_t> encode(const CodecSpec& spec, std::span<const Part> parts,
                           const EncodeOptions& options, std::span<std::byte> out,
                           Workspace& workspace, EncodeStats* stats = nullptr);

// Block index entry, as inspect() shows it.
struct BlockInfo {
  std::uint64_t values = 0;
  std::uint64_t length = 0;  // bytes
  std::string_view kind;     // "stored", "coded", "fixed"
  std::uint32_t lanes = 0;
  std::uint32_t plane_bytes = 0;
  bool own_table = false;  // the block starts with its own table, not the built-in one
  std::uint32_t outliers = 0;
};

struct FrameInfo {
  unsigned version = 0;
  DType dtype = DType::kFloat32;
  CodecSpec codec;
  FrameContext context;
  std::uint64_t value_count = 0;
  std::uint64_t header_length = 0;   // header, part table, index and metadata
  std::uint64_t encoded_length = 0;  // whole frame
  std::vector<std::uint64_t> part_counts;
  std::vector<BlockInfo> blocks;
  std::string metadata;
};

// Length of the frame that starts at `bytes` from its first 128 bytes alone, without checking
// the checksum: what a reader needs to cut a file of several frames.
Result<std::uint64_t> frame_length(std::span<const std::byte> bytes);

// Reads and checks header, part table and index (CRC-32C). `frame` is exactly one frame.
// Errors: kTruncated, kTrailingBytes, kBadMagic, kUnsupportedVersion, kBadHeader,
// kHeaderChecksum.
Result<FrameInfo> inspect(std::span<const std::byte> frame);

// Checks everything, decodes nothing: inspect() and the hash of every block.
Status verify(std::span<const std::byte> frame);

// Decodes into `parts`, whose dtype and counts must be those of the frame (kShapeMismatch).
// Every block's hash is checked before the block is decoded. After an error the contents of
// `parts` are unspecified.
Status decode(std::span<const std::byte> frame, std::span<const TensorView> parts,
              Workspace& workspace);

// Decodes part `index` alone, one layer of many in a frame: header, part table and index are
// checked whole, of the blocks only those that hold values of the part are read (and their hashes
// checked). So it costs the part's blocks, of which the first and the last may be shared with its
// neighbours. Errors as decode(), and kOutOfRange (the frame has no such part).
Status decode_part(std::span<const std::byte> frame, std::uint32_t index, const TensorView& part,
                   Workspace& workspace);

// As decode(), but adds each value to an accumulator: float32 for float32, float16 and bfloat16
// frames, float64 for float64 frames.
Status decode_add(std::span<const std::byte> frame, std::span<const TensorView> accumulators,
                  Workspace& workspace);

}  // namespace gradwire

#endif  // GRADWIRE_CODEC_H_
