// Any bytes, made to pass the checks of magic, length and checksums, so that the rest is reached.
#include <algorithm>
#include <memory>

#include "core/endian.h"
#include "fuzz/checks.h"
#include "support/frame_fixup.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::uint8_t kStart[] = {'G', 'W', 'R', 'F', 0, 0};
  constexpr std::size_t kHeader = 128, kLengthField = 72;
  if (size < kHeader) return 0;
  const auto copy = std::make_unique<std::byte[]>(size);
  std::transform(data, data + size, copy.get(), [](std::uint8_t byte) { return std::byte{byte}; });
  std::transform(std::begin(kStart), std::end(kStart), copy.get(),
                 [](std::uint8_t byte) { return std::byte{byte}; });
  gradwire::internal::store_le(copy.get() + kLengthField, std::uint64_t{size});
  const std::span<std::byte> frame(copy.get(), size);
  gradwire::test::fix_checksums(frame);
  static gradwire::Workspace workspace;  // of all inputs: none may spoil it
  gradwire::test::HeapBuffers buffers;
  gradwire::test::check_decode(frame, true, buffers, workspace);
  return 0;
}
