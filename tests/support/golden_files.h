// The files of tests/golden, as tools/make_golden.py wrote them.
#ifndef GRADWIRE_TESTS_SUPPORT_GOLDEN_FILES_H_
#define GRADWIRE_TESTS_SUPPORT_GOLDEN_FILES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gradwire/codec.h"
#include "gradwire/status.h"

namespace gradwire::test {

using Bytes = std::vector<std::byte>;

struct GoldenPart {
  std::uint64_t values = 0;
  std::uint32_t tensor = 0;
  std::uint64_t first_index = 0;
};

struct GoldenFrame {
  std::string file;
  std::string codec;  // CodecSpec text
  DType dtype = DType::kFloat32;
  std::string input;
  std::vector<GoldenPart> parts;
  FrameContext context;
  std::string metadata;
  bool decode_only = false;  // a frame that the encoder does not make
  std::string frame_sha256;
  std::string values_sha256;

  std::uint64_t value_count() const;
  Bytes bytes() const;
  // The values that were encoded, in the order of the parts.
  Bytes values() const;
};

struct GoldenError {
  std::string file;
  std::string error;  // error_name()

  Bytes bytes() const;
};

// Both abort the test program with a message if a file is missing or malformed.
const std::vector<GoldenFrame>& golden_frames();
const std::vector<GoldenError>& golden_errors();

// For the name of a parameterised test: letters, digits and _ only.
std::string test_name(const std::string& file);

}  // namespace gradwire::test

#endif  // GRADWIRE_TESTS_SUPPORT_GOLDEN_FILES_H_
