#include "support/golden_files.h"

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

namespace gradwire::test {
namespace {

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "tests/golden: %s\n", what.c_str());
  std::abort();
}

std::string golden_path(const std::string& name) {
  return std::string(GRADWIRE_TEST_DATA_DIR) + "/golden/" + name;
}

Bytes read_file(const std::string& name) {
  std::ifstream file(golden_path(name), std::ios::binary);
  if (!file) fail("cannot read " + name);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  Bytes bytes(text.size());
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

DType dtype_of(const std::string& name) {
  for (int number = 1; number < 256; ++number) {
    if (dtype_name(static_cast<DType>(number)) == name) return static_cast<DType>(number);
  }
  fail("no dtype " + name);
}

FrameContext context_of(const nlohmann::json& json) {
  FrameContext context;
  context.op = static_cast<Op>(json.value("op", 0));
  context.phase = static_cast<Phase>(json.value("phase", 0));
  context.reduction = static_cast<Reduction>(json.value("reduction", 0));
  context.schedule = static_cast<Schedule>(json.value("schedule", 0));
  context.world = json.value("world", 0u);
  context.sender = json.value("sender", 0u);
  context.group_id = json.value("group_id", std::uint64_t{0});
  context.step = json.value("step", std::uint64_t{0});
  context.sequence = json.value("sequence", std::uint64_t{0});
  context.segment = json.value("segment", 0u);
  context.segment_count = json.value("segment_count", 1u);
  context.first_value = json.value("first_value", std::uint64_t{0});
  return context;
}

GoldenFrame frame_of(const nlohmann::json& json) {
  GoldenFrame frame;
  frame.file = json.at("file").get<std::string>();
  frame.codec = json.at("codec").get<std::string>();
  frame.dtype = dtype_of(json.at("dtype").get<std::string>());
  frame.input = json.at("input").get<std::string>();
  for (const nlohmann::json& part : json.at("parts")) {
    frame.parts.push_back({part.at("values").get<std::uint64_t>(),
                           part.at("tensor").get<std::uint32_t>(),
                           part.at("first_index").get<std::uint64_t>()});
  }
  frame.context = context_of(json.at("context"));
  frame.metadata = json.at("metadata").get<std::string>();
  frame.decode_only = json.at("decode_only").get<bool>();
  frame.frame_sha256 = json.at("frame_sha256").get<std::string>();
  frame.values_sha256 = json.at("values_sha256").get<std::string>();
  return frame;
}

nlohmann::json read_manifest() {
  const Bytes bytes = read_file("manifest.json");
  const char* const text = reinterpret_cast<const char*>(bytes.data());
  nlohmann::json manifest = nlohmann::json::parse(text, text + bytes.size(), nullptr, false);
  if (manifest.is_discarded()) fail("manifest.json is not JSON");
  return manifest;
}

}  // namespace

std::uint64_t GoldenFrame::value_count() const {
  std::uint64_t count = 0;
  for (const GoldenPart& part : parts) count += part.values;
  return count;
}

Bytes GoldenFrame::bytes() const { return read_file("frames/" + file); }

Bytes GoldenFrame::values() const {
  // .npy version 1: 10 bytes, the last two the length of the header that follows.
  const Bytes npy = read_file("inputs/" + input + ".npy");
  const std::size_t size = static_cast<std::size_t>(value_count()) * dtype_size(dtype);
  if (npy.size() < 10) fail(input + ".npy is too short");
  const std::size_t begin =
      10 + std::to_integer<std::size_t>(npy[8]) + 256 * std::to_integer<std::size_t>(npy[9]);
  if (npy.size() < begin + size) fail(input + ".npy is too short");
  const auto first = npy.begin() + static_cast<std::ptrdiff_t>(begin);
  return Bytes(first, first + static_cast<std::ptrdiff_t>(size));
}

Bytes GoldenError::bytes() const { return read_file("errors/" + file); }

const std::vector<GoldenFrame>& golden_frames() {
  static const std::vector<GoldenFrame> kFrames = [] {
    std::vector<GoldenFrame> frames;
    const nlohmann::json manifest = read_manifest();
    for (const nlohmann::json& json : manifest.at("frames")) {
      frames.push_back(frame_of(json));
    }
    return frames;
  }();
  return kFrames;
}

const std::vector<GoldenError>& golden_errors() {
  static const std::vector<GoldenError> kErrors = [] {
    std::vector<GoldenError> errors;
    const nlohmann::json manifest = read_manifest();
    for (const nlohmann::json& json : manifest.at("errors")) {
      errors.push_back({json.at("file").get<std::string>(), json.at("error").get<std::string>()});
    }
    return errors;
  }();
  return kErrors;
}

std::string test_name(const std::string& file) {
  std::string name = file.substr(0, file.rfind('.'));
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}

}  // namespace gradwire::test
