// Any bytes to inspect() and frame_length(): header, part table, index, metadata.
#include "core/endian.h"
#include "fuzz/checks.h"
#include "support/frame_fixup.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto* first = reinterpret_cast<const std::byte*>(data);
  static_cast<void>(gradwire::test::check_inspect({first, size}));
  static_cast<void>(gradwire::frame_length({first, size}));
  std::vector<std::byte> fixed(first, first + size);
  gradwire::test::fix_checksums(fixed);
  static_cast<void>(gradwire::test::check_inspect(fixed));
  return 0;
}
