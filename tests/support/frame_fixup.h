// Puts the checksums of a damaged frame right, so that damage reaches the checks behind them.
#ifndef GRADWIRE_TESTS_SUPPORT_FRAME_FIXUP_H_
#define GRADWIRE_TESTS_SUPPORT_FRAME_FIXUP_H_

#include <cstddef>
#include <span>

namespace gradwire::test {

// Recomputes the hash of every block and the checksum of the header, as far as they lie inside
// `frame`. Reads no more of the frame than that.
void fix_checksums(std::span<std::byte> frame);

}  // namespace gradwire::test

#endif  // GRADWIRE_TESTS_SUPPORT_FRAME_FIXUP_H_
