// Any bytes to inspect(), verify(), decode() and decode_add(). Checksums as they come: this one
// tests what stands before and at the gate.
#include "fuzz/checks.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  gradwire::test::HeapBuffers buffers;
  gradwire::Workspace workspace;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  gradwire::test::check_decode(bytes, true, buffers, workspace);
  return 0;
}
