// Any text to CodecSpec::parse().
#include "fuzz/checks.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  gradwire::test::check_spec({reinterpret_cast<const char*>(data), size});
  return 0;
}
