// SHA-256, for the hashes in the manifest of the golden frames.
#ifndef GRADWIRE_TESTS_SUPPORT_SHA256_H_
#define GRADWIRE_TESTS_SUPPORT_SHA256_H_

#include <cstddef>
#include <span>
#include <string>

namespace gradwire::test {

// 64 hexadecimal digits.
std::string sha256(std::span<const std::byte> bytes);

}  // namespace gradwire::test

#endif  // GRADWIRE_TESTS_SUPPORT_SHA256_H_
