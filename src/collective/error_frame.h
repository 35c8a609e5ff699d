// Error frames (docs/format.md section 7): how a rank tells the others in band that it failed.
#ifndef GRADWIRE_COLLECTIVE_ERROR_FRAME_H_
#define GRADWIRE_COLLECTIVE_ERROR_FRAME_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frame/header.h"
#include "gradwire/status.h"

namespace gradwire::internal {

// Bytes of an error frame at most; texts are cut to fit.
inline constexpr std::size_t kMaxErrorFrameBytes = 8192;

// `place`: header of the collective that failed. May throw std::bad_alloc.
std::vector<std::byte> write_error_frame(const FrameHeader& place, const Error& error);

// The error of a peer as the JSON metadata of its frame tells it; unreadable text gives a
// kPeerError that says so. Bounded by the text; unknown keys are skipped.
Error parse_error_metadata(std::string_view json);

// What `report` of rank `sender` means for rank `me`:
// * a mismatch keeps its fields; if it is about `me`, mine and theirs change places and the rank
//   becomes the sender;
// * a lost or late third rank stays that;
// * whatever else went wrong there is kPeerError of that rank, with the code in the message.
Error translate_error(Error report, int sender, int me);

}  // namespace gradwire::internal

#endif  // GRADWIRE_COLLECTIVE_ERROR_FRAME_H_
