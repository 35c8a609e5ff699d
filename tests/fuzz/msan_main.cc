// Does anything depend on memory that was never written? For MemorySanitizer (preset msan), which
// needs all code instrumented: so no iostreams, no GoogleTest, no JSON here. See kUsage.
#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codec/workspace.h"
#include "fuzz/checks.h"
#include "fuzz/uninitialized.h"
#include "support/mutate.h"
#include "support/tensor.h"

namespace gradwire::test {
namespace {

using Bytes = std::vector<std::byte>;

constexpr char kUsage[] =
    "usage: gradwire_msan GOLDEN SECONDS SEED\n"
    "       gradwire_msan --self-test\n"
    "Encodes values of every codec and type, decodes those frames and the ones in GOLDEN/frames "
    "and\n"
    "GOLDEN/errors, then damaged ones for SECONDS. MemorySanitizer ends it where something "
    "depends\n"
    "on memory that was never written. Exit status: 0 nothing found, 2 wrong usage, else a "
    "finding.\n";

void fail(const char* what, const std::string& which) {
  std::fprintf(stderr, "breach: %s: %s\n", what, which.c_str());
  std::abort();
}

// ---- a workspace that remembers nothing ----

void forget_scratch(internal::BlockScratch& scratch) {
  forget_all(scratch.values);
  forget_all(scratch.block);
  internal::CodedScratch& coded = scratch.coded;
  forget_all(coded.values);
  forget_all(coded.changed);
  forget_all(coded.lane_bits);
  forget_all(coded.tokens);
  forget_all(coded.outlier_batch);
  forget_all(coded.wide);
  forget_all(coded.batch_scales);
  forget_all(coded.scale_batch);
  forget_all(coded.words);
  forget_all(coded.scales);
  forget_all(coded.plane);
  forget_all(coded.outliers);
  forget_all(coded.wide_outliers);
}

// Buffers only grow and are zeroed when they do, which would hide what is read before it is
// written.
void forget_scratch(Workspace& workspace) {
  Workspace::Impl& impl = workspace.impl();
  forget_scratch(impl.scratch);
  for (const auto& other : impl.others) forget_scratch(*other);
}

// ---- files ----

Bytes read_file(const std::string& name) {
  Bytes bytes;
  std::FILE* const file = std::fopen(name.c_str(), "rb");
  if (file == nullptr) return bytes;
  std::byte chunk[4096];
  std::size_t count = 0;
  while ((count = std::fread(chunk, 1, sizeof(chunk), file)) > 0) {
    bytes.insert(bytes.end(), chunk, chunk + count);
  }
  std::fclose(file);
  return bytes;
}

// Contents of the files of a folder, in the order of their names.
std::vector<Bytes> read_folder(const std::string& folder) {
  std::vector<std::string> names;
  DIR* const listing = opendir(folder.c_str());
  if (listing == nullptr) fail("no such folder", folder);
  while (const dirent* const entry = readdir(listing)) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  closedir(listing);
  std::sort(names.begin(), names.end());
  std::vector<Bytes> files;
  for (const std::string& name : names) files.push_back(read_file(folder + "/" + name));
  return files;
}

// ---- encoding ----

Tensor make_values(DType dtype, std::uint64_t count, unsigned kind, std::uint64_t seed) {
  Tensor tensor = kind == 0 ? random_bits(dtype, count, seed) : gradient_like(dtype, count, seed);
  if (!is_compressible(dtype)) return tensor;
  if (kind == 2) {
    for (std::size_t i = 0; i < count; ++i) {
      if (i % 64 != 5) tensor.set_bits(i, 0);
    }
  }
  const Tensor special = special_values(dtype);
  for (std::size_t i = 0; kind == 1 && i < special.count && 9 * i + 3 < count; ++i) {
    tensor.set_bits(9 * i + 3, special.bits(i));
  }
  return tensor;
}

// The frame of one case, from a workspace as it may come.
Bytes encoded(const CodecSpec& spec, const std::vector<Tensor>& tensors, std::string_view metadata,
              Workspace& workspace, const std::string& which) {
  std::vector<Part> parts;
  std::uint64_t values = 0;
  for (const Tensor& tensor : tensors) {
    parts.push_back({tensor.view(), static_cast<std::uint32_t>(parts.size()), 0});
    values += tensor.count;
  }
  EncodeOptions options;
  options.metadata = metadata;
  const auto size = static_cast<std::size_t>(
      max_encoded_size(spec, tensors[0].dtype, values, parts.size(), metadata.size()));
  const auto out = std::make_unique_for_overwrite<std::byte[]>(size);
  forget_scratch(workspace);
  const Result<std::size_t> length = encode(spec, parts, options, {out.get(), size}, workspace);
  if (!length.ok()) fail("not encoded", which);
  if (!all_written(out.get(), *length)) fail("a byte of the frame was not written", which);
  return Bytes(out.get(), out.get() + *length);
}

void add_frames(const CodecSpec& spec, DType dtype, const std::string& which, Workspace& workspace,
                std::vector<Bytes>* frames) {
  static constexpr std::uint64_t kCounts[] = {1, 63, 270, 4200, 8300, 33000};
  for (const std::uint64_t count : kCounts) {
    for (unsigned kind = 0; kind < 3; ++kind) {
      std::vector<Tensor> tensors;
      tensors.push_back(make_values(dtype, count, kind, 10 * count + kind));
      if (kind != 1) tensors.push_back(make_values(dtype, count / 3, kind, count));
      frames->push_back(encoded(spec, tensors, kind == 2 ? "{}" : "", workspace, which));
    }
  }
}

// Frames of every codec example with every type that it takes, of one block and of several.
std::vector<Bytes> encode_all(Workspace& workspace) {
  std::vector<Bytes> frames;
  for (const CodecDescription& codec : codecs()) {
    for (const std::string_view example : codec.examples) {
      Result<CodecSpec> spec = CodecSpec::parse(example);
      if (!spec.ok()) fail("not a spec", std::string(example));
      for (const DType dtype : codec.dtypes) {
        const std::string which = std::string(example) + " " + std::string(dtype_name(dtype));
        add_frames(*spec, dtype, which, workspace, &frames);
        spec->block_values = 4096;
        add_frames(*spec, dtype, which, workspace, &frames);
        spec->block_values = CodecSpec{}.block_values;
      }
    }
  }
  return frames;
}

// ---- decoding ----

void check_frame(std::span<const std::byte> frame, bool thorough, Workspace& workspace) {
  HeapBuffers buffers;
  forget_scratch(workspace);
  check_decode(frame, thorough, buffers, workspace);
}

std::uint64_t check_damaged(const std::vector<Bytes>& frames, double seconds, std::uint64_t seed,
                            Workspace& workspace) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  std::uint64_t number = 0;
  for (; number % 16 != 0 || Clock::now() < end; ++number) {
    const std::uint64_t chosen = seed * 0x9E3779B97F4A7C15u + number * 0xD1342543DE82EF95u;
    const Bytes& frame = frames[static_cast<std::size_t>((chosen >> 32) % frames.size())];
    check_frame(mutated(frame, chosen), number % 8 == 0, workspace);
  }
  return number;
}

int run(const std::string& golden, double seconds, std::uint64_t seed) {
  Workspace workspace;
  if (!workspace.set_threads(2).ok()) fail("no threads", "2");
  std::vector<Bytes> frames = encode_all(workspace);
  const std::size_t encoded_frames = frames.size();
  for (const char* const folder : {"/frames", "/errors"}) {
    for (Bytes& frame : read_folder(golden + folder)) frames.push_back(std::move(frame));
  }
  for (const Bytes& frame : frames) check_frame(frame, true, workspace);
  const std::size_t good_frames = frames.size();
  std::erase_if(frames, [](const Bytes& frame) { return frame.empty() || frame.size() > 20000; });
  const std::uint64_t damaged_frames = check_damaged(frames, seconds, seed, workspace);
  std::printf("msan: %zu frames encoded, %zu decoded, %llu damaged ones; seed %llu, %s\n",
              encoded_frames, good_frames, static_cast<unsigned long long>(damaged_frames),
              static_cast<unsigned long long>(seed), std::string(simd_target()).c_str());
  return 0;
}

// ---- would anything be found? ----

// wait() status of a process that does it; 0: it found nothing.
template <typename Action>
int status_of(const Action& action) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(3);  // reports are no news here
    action();
    _exit(0);
  }
  int status = -1;
  if (child < 0 || waitpid(child, &status, 0) != child) return -1;
  return status;
}

int self_test() {
  Workspace workspace;
  const std::vector<Tensor> tensors = {gradient_like(DType::kFloat32, 300, 1)};
  const CodecSpec spec = *CodecSpec::parse("near_lossless");
  const Bytes frame = encoded(spec, tensors, "", workspace, "self-test");
  const bool clean = status_of([&] { check_frame(frame, true, workspace); }) == 0;
  const bool metadata = status_of([&] {
                          char text[4] = {};
                          forget(text, sizeof(text));
                          encoded(spec, tensors, {text, 4}, workspace, "self-test");
                        }) != 0;
  const bool input = status_of([&] {
                       std::vector<Tensor> blind = tensors;
                       forget(blind[0].bytes.data() + 400, 4);
                       encoded(spec, blind, "", workspace, "self-test");
                     }) != 0;
  const bool bytes = status_of([&] {
                       Bytes blind = frame;
                       forget(blind.data() + blind.size() - 1, 1);
                       check_frame(blind, false, workspace);
                     }) != 0;
  HeapBuffers buffers;
  const bool destination = !all_written(buffers.take(8), 8);
  std::printf(
      "self-test: clean run %d, unwritten metadata %d, value %d, byte of a frame %d, "
      "destination %d\n",
      clean, metadata, input, bytes, destination);
  return clean && metadata && input && bytes && destination ? 0 : 1;
}

}  // namespace
}  // namespace gradwire::test

int main(int count, char** arguments) {
  if (count == 2 && std::string_view(arguments[1]) == "--self-test") {
    return gradwire::test::self_test();
  }
  if (count != 4) {
    std::fputs(gradwire::test::kUsage, stderr);
    return 2;
  }
  return gradwire::test::run(arguments[1], std::strtod(arguments[2], nullptr),
                             std::strtoull(arguments[3], nullptr, 10));
}
