// What Python sees of a frame's header and of the registry.
#ifndef GRADWIRE_CORE_MODULE_FRAME_DICT_H_
#define GRADWIRE_CORE_MODULE_FRAME_DICT_H_

#include <pybind11/pybind11.h>

#include "gradwire/codec.h"

namespace gradwire::internal {

// Keys as `gradwire inspect --json` has them; "part_counts" and "metadata" (bytes) instead of
// what that makes of them.
pybind11::dict frame_dict(const FrameInfo& info);

pybind11::list codec_list();

}  // namespace gradwire::internal

#endif  // GRADWIRE_CORE_MODULE_FRAME_DICT_H_
