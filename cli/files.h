// Reading whole files, and writing files that appear only when they are complete.
#ifndef GRADWIRE_CLI_FILES_H_
#define GRADWIRE_CLI_FILES_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gradwire/status.h"

namespace gradwire::cli {

// The bytes of a file: mapped where the file is a regular one, else read to its end.
class InputFile {
 public:
  // Errors: missing, unreadable, a directory, empty.
  static Result<InputFile> open(const std::string& path);
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&& other) noexcept;
  ~InputFile();

  std::span<const std::byte> bytes() const noexcept;

 private:
  InputFile() = default;
  void* map_ = nullptr;
  std::size_t map_bytes_ = 0;
  std::vector<std::byte> read_;
};

// Writes to OUT.<process>.part beside OUT; commit() renames it. Without commit() nothing stays,
// also when the process is interrupted.
class OutputFile {
 public:
  // Errors: OUT is IN (kInvalidArgument), no regular file, or cannot be created.
  static Result<OutputFile> create(const std::string& path, const std::string& input);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  Status write(std::span<const std::byte> bytes);
  Status write(std::string_view text);
  Status commit();

 private:
  OutputFile() = default;
  std::string path_;
  std::string part_;
  int descriptor_ = -1;
};

bool has_suffix(std::string_view path, std::string_view suffix) noexcept;

// One line on stderr that is rewritten: "encode: 37 %". Silent unless stderr is a terminal or
// the user asked for it.
class Progress {
 public:
  Progress(std::string label, std::uint64_t total, bool always);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();
  void add(std::uint64_t done);

 private:
  std::string label_;
  std::uint64_t total_;
  std::uint64_t done_ = 0;
  bool shown_;
  bool terminal_;
};

}  // namespace gradwire::cli

#endif  // GRADWIRE_CLI_FILES_H_
