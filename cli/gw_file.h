// The encoded file (.gw): frames one after the other, with names and shapes in their metadata
// (docs/format.md sections 1 and 1.5).
//
// Keys of the metadata that only the command line knows:
//   every frame   frame, frames (number of this one, number of all), tensors[].dtype (how the
//                 file spells the type, where that does not follow from the frame's dtype)
//   first frame   safetensors: __metadata__, or header where the library would write another
//                 npy: fortran_order, header (the dictionary), npy_version
#ifndef GRADWIRE_CLI_GW_FILE_H_
#define GRADWIRE_CLI_GW_FILE_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "files.h"
#include "gradwire/codec.h"
#include "gradwire/status.h"
#include "tensor_file.h"

namespace gradwire::cli {

struct GwFrame {
  std::span<const std::byte> bytes;
  FrameInfo info;
  Json metadata = Json::object();
  std::vector<Tensor> tensors;  // one per part; without metadata they are named part0, part1, ...
};

struct GwFile {
  InputFile input;
  std::string format;  // of the original file; empty where the frames carry no metadata
  std::vector<GwFrame> frames;
};

// Reads and checks headers, indexes and metadata of all frames; the hashes of the blocks are
// checked by verify() and decode(). Errors name the frame.
Result<GwFile> read_gw_file(const std::string& path);

// How `format` spells the type, where nothing else is said.
std::string default_type(const std::string& format, DType dtype);

// Metadata of one frame. `restore` is merged into that of the first.
std::string make_metadata(const TensorFile& file, std::span<const Tensor> tensors,
                          std::size_t frame, std::size_t frames);

}  // namespace gradwire::cli

#endif  // GRADWIRE_CLI_GW_FILE_H_
