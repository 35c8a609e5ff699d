// Version of the library and of the wire format.
#ifndef GRADWIRE_VERSION_H_
#define GRADWIRE_VERSION_H_

#define GRADWIRE_VERSION_MAJOR 0
#define GRADWIRE_VERSION_MINOR 1
#define GRADWIRE_VERSION_PATCH 0
#define GRADWIRE_VERSION_STRING "0.1.0"

namespace gradwire {

// Wire format written and read. 0 until CUDA encoders and decoders have been measured: frames
// of version 0 are for one release of the library only.
inline constexpr unsigned kFormatVersion = 0;

}  // namespace gradwire

#endif  // GRADWIRE_VERSION_H_
