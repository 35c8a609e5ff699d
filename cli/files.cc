#include "files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "failure.h"

namespace gradwire::cli {
namespace {

// What the signal handler removes.
std::atomic<const char*> g_part{nullptr};

void remove_part_and_die(int signal_number) {
  if (const char* part = g_part.load()) unlink(part);
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

// To be called before the file is made, so that there is no moment in which a signal leaves it.
// The path needs a home that stays where it is; a process writes one file at a time.
void remove_part_on_signal(const std::string& part) {
  static std::string home;
  g_part.store(nullptr);
  home = part;
  g_part.store(home.c_str());
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
    // What the caller has turned off stays off, as by nohup.
    if (signal(number, remove_part_and_die) == SIG_IGN) signal(number, SIG_IGN);
  }
}

// What the SIGBUS handler prints.
std::string g_shorter;

void say_shorter_and_exit(int) {
  if (const char* part = g_part.load()) unlink(part);
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, g_shorter.data(), g_shorter.size());
  _exit(kExitBadData);
}

// A mapped file that another process cuts ends in SIGBUS, where reading it would end in an error.
void report_on_cut(const std::string& path) {
  g_shorter = error_line(path + ": the file became shorter while it was read");
  signal(SIGBUS, say_shorter_and_exit);
}

Error system_error(const char* what) {
  return bad_data(std::string(what) + ": " + std::strerror(errno));
}

Status read_to_end(int descriptor, std::vector<std::byte>& bytes) {
  constexpr std::size_t kChunk = std::size_t{1} << 20;
  std::size_t used = 0;
  while (true) {
    bytes.resize(used + kChunk);
    const ssize_t got = ::read(descriptor, bytes.data() + used, kChunk);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error("cannot read");
    used += static_cast<std::size_t>(got);
    if (got == 0) break;
  }
  bytes.resize(used);
  return {};
}

}  // namespace

Result<InputFile> InputFile::open(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return system_error("cannot open");
  InputFile file;
  struct stat status {};
  Status read = Status{};
  if (fstat(descriptor, &status) != 0) {
    read = system_error("cannot read");
  } else if (S_ISDIR(status.st_mode)) {
    read = bad_data("is a directory");
  } else if (S_ISREG(status.st_mode) && status.st_size > 0) {
    const auto size = static_cast<std::size_t>(status.st_size);
    void* map = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (map == MAP_FAILED) {
      read = system_error("cannot map");
    } else {
      file.map_ = map;
      file.map_bytes_ = size;
      report_on_cut(path);
    }
  } else {
    read = read_to_end(descriptor, file.read_);
  }
  ::close(descriptor);
  if (!read.ok()) return read.error();
  if (file.bytes().empty()) return bad_data("the file is empty");
  return file;
}

InputFile::InputFile(InputFile&& other) noexcept
    : map_(std::exchange(other.map_, nullptr)),
      map_bytes_(std::exchange(other.map_bytes_, 0)),
      read_(std::move(other.read_)) {}

InputFile& InputFile::operator=(InputFile&& other) noexcept {
  std::swap(map_, other.map_);
  std::swap(map_bytes_, other.map_bytes_);
  std::swap(read_, other.read_);
  return *this;
}

InputFile::~InputFile() {
  if (map_ != nullptr) munmap(map_, map_bytes_);
}

std::span<const std::byte> InputFile::bytes() const noexcept {
  if (map_ != nullptr) return {static_cast<const std::byte*>(map_), map_bytes_};
  return read_;
}

Result<OutputFile> OutputFile::create(const std::string& path, const std::string& input) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (fs::equivalent(path, input, ignored)) return bad_usage("OUT is the same file as IN");
  OutputFile file;
  file.path_ = path;
  if (fs::exists(path, ignored)) {
    if (!fs::is_regular_file(path, ignored)) return bad_data("exists and is no regular file");
    file.path_ = fs::canonical(path, ignored).string();  // keep a symbolic link, replace its target
  }
  file.part_ = file.path_ + "." + std::to_string(getpid()) + ".part";
  remove_part_on_signal(file.part_);
  file.descriptor_ = ::open(file.part_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file.descriptor_ < 0) {
    g_part.store(nullptr);  // what stands there is not ours
    return system_error("cannot create");
  }
  return file;
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      part_(std::move(other.part_)),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

OutputFile::~OutputFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  unlink(part_.c_str());
  g_part.store(nullptr);
}

Status OutputFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::size_t chunk = std::min(bytes.size(), std::size_t{1} << 30);
    const ssize_t written = ::write(descriptor_, bytes.data(), chunk);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return system_error("cannot write");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

Status OutputFile::write(std::string_view text) {
  return write(std::as_bytes(std::span(text.data(), text.size())));
}

Status OutputFile::commit() {
  if (::close(std::exchange(descriptor_, -1)) != 0 ||
      std::rename(part_.c_str(), path_.c_str()) != 0) {
    Error error = system_error("cannot write");
    unlink(part_.c_str());
    g_part.store(nullptr);
    return error;
  }
  g_part.store(nullptr);
  return {};
}

bool has_suffix(std::string_view path, std::string_view suffix) noexcept {
  return path.ends_with(suffix);
}

Progress::Progress(std::string label, std::uint64_t total, bool always)
    : label_(std::move(label)), total_(total), terminal_(isatty(STDERR_FILENO) != 0) {
  shown_ = (terminal_ || always) && total > 0;
}

Progress::~Progress() {
  if (shown_ && terminal_) std::fputs("\r\x1b[K", stderr);
}

void Progress::add(std::uint64_t done) {
  done_ += done;
  if (!shown_) return;
  const double percent = 100.0 * static_cast<double>(done_) / static_cast<double>(total_);
  std::fprintf(stderr, "%s%s: %.0f %%%s", terminal_ ? "\r\x1b[K" : "", label_.c_str(), percent,
               terminal_ ? "" : "\n");
}

}  // namespace gradwire::cli
