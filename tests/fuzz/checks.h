// What must hold for every string of bytes that is given to the library. A breach ends the process
// by abort(), with a line on stderr.
#ifndef GRADWIRE_TESTS_FUZZ_CHECKS_H_
#define GRADWIRE_TESTS_FUZZ_CHECKS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "gradwire/codec.h"

namespace gradwire::test {

// Memory for decoded values, of exactly the size asked for, so that a step outside is seen.
class Buffers {
 public:
  virtual ~Buffers() = default;
  // Valid until release_all(); null if there is not so much.
  virtual std::byte* take(std::size_t bytes) = 0;
  virtual void release_all() = 0;
};

// From the heap, for sanitizers.
class HeapBuffers : public Buffers {
 public:
  std::byte* take(std::size_t bytes) override;
  void release_all() override { buffers_.clear(); }

 private:
  std::vector<std::unique_ptr<std::byte[]>> buffers_;
};

// inspect(), frame_length() and verify(): errors of the bytes only, with a text; sizes that add up.
// Returns the info of what inspect() accepts.
Result<FrameInfo> check_inspect(std::span<const std::byte> bytes);

// inspect() and decode() into destinations as the frame describes them; with `thorough` also
// verify(), a second decode() with the same result, and decode_add(). Returns 0 where the frame
// decoded, else the code of the error.
int check_decode(std::span<const std::byte> bytes, bool thorough, Buffers& buffers,
                 Workspace& workspace);

// CodecSpec::parse(): an error with a text, or a spec whose text gives the same spec.
void check_spec(std::string_view text);

}  // namespace gradwire::test

#endif  // GRADWIRE_TESTS_FUZZ_CHECKS_H_
