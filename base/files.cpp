#include "millrace/base/files.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <system_error>

#include "millrace/base/errors.h"
#include "millrace/base/repeated.h"
#include "millrace/base/text.h"

namespace millrace {
namespace {

struct DiskFull : Error {
  using Error::Error;
};

[[noreturn]] void fail(const std::filesystem::path& path, std::string_view what) {
  const int reason = errno;
  const auto text = path.string() + ": " + std::string(what) + ": " + std::strerror(reason);
  if (reason == ENOSPC || reason == EDQUOT) throw DiskFull(text);
  throw Error(text);
}

/// Returns the message of `full` with the size the file needs, the free space and advice.
std::string full_disk_text(const DiskFull& full, const std::filesystem::path& file,
                           std::uint64_t bytes) {
  std::error_code unknown;
  const auto space = std::filesystem::space(std::filesystem::absolute(file).parent_path(), unknown);
  return std::string(full.what()) + ": the file needs " + byte_text(static_cast<double>(bytes)) +
         (unknown ? "" : ", " + byte_text(static_cast<double>(space.available)) + " are free") +
         "; free some space or write to another disk";
}

UniqueFd opened(const std::filesystem::path& path, int flags, std::string_view otherwise) {
  UniqueFd fd(repeated([&] { return ::open(path.c_str(), flags | O_CLOEXEC, 0644); }));
  if (!fd) fail(path, otherwise);
  return fd;
}

/// Opens a file for reading, or a pipe if `wanted` allows it, without waiting for the pipe's
/// writer. Throws Error for anything else, since it may have no end.
UniqueFd opened_to_read(const std::filesystem::path& path, Pipes wanted = Pipes::refused) {
  constexpr auto kOtherwise = "cannot be opened";
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0) fail(path, kOtherwise);
  if (S_ISREG(about.st_mode)) return opened(path, O_RDONLY, kOtherwise);
  if (S_ISDIR(about.st_mode)) {
    errno = EISDIR;
    fail(path, kOtherwise);
  }
  if (!S_ISFIFO(about.st_mode)) throw Error(path.string() + ": is a device, not a file");
  if (wanted == Pipes::refused) throw Error(path.string() + ": is a pipe, not a file");
  return opened(path, O_RDONLY | O_NONBLOCK, kOtherwise);
}

/// A file or pipe that is read sequentially.
class Input {
 public:
  Input(const std::filesystem::path& path, Pipes wanted)
      : path_(path), fd_(opened_to_read(path, wanted)), wanted_(wanted) {
    struct stat about {};
    if (::fstat(fd_.get(), &about) != 0) fail(path, "cannot be opened");
    size_ = static_cast<std::size_t>(about.st_size);
    has_writer_ = !S_ISFIFO(about.st_mode);  // a regular file needs no writer to have an end
  }

  std::size_t size() const { return size_; }

  /// Reads up to `count` bytes; returns 0 at the end.
  std::size_t read(char* to, std::size_t count) {
    for (;;) {
      const auto got = repeated([&] { return ::read(fd_.get(), to, count); });
      if (got > 0 || (got == 0 && has_writer_)) return static_cast<std::size_t>(got);
      if (got < 0 && errno != EAGAIN) fail(path_, "cannot be read");
      has_writer_ = has_writer_ || got < 0;
      if (wait()) has_writer_ = true;
    }
  }

 private:
  /// Waits for the next bytes or the end of a pipe. If the pipe has no writer, returns false after
  /// a timeout, and throws Error the second time.
  bool wait() {
    constexpr int kWriterTimeoutMs = 10'000;
    const bool for_ever = has_writer_ || wanted_ == Pipes::awaited;
    pollfd pipe{fd_.get(), POLLIN, 0};
    const int events = ::poll(&pipe, 1, for_ever ? -1 : waited_ ? 0 : kWriterTimeoutMs);
    if (events > 0 || (events < 0 && errno == EINTR)) return events > 0;
    if (events < 0) fail(path_, "cannot be read");
    if (waited_) throw Error(path_.string() + ": no process writes to this pipe");
    waited_ = true;
    return false;
  }

  const std::filesystem::path& path_;
  UniqueFd fd_;
  const Pipes wanted_;
  std::size_t size_ = 0;
  bool has_writer_ = false, waited_ = false;
};

/// Returns the file to replace when `name` is written, after following symbolic links; it need not
/// exist. nullopt for devices, pipes and other special files, which are written to directly. Throws
/// Error.
std::optional<std::filesystem::path> replaceable(const std::filesystem::path& name) {
  struct stat named {};
  const bool exists = ::stat(name.c_str(), &named) == 0;
  if (!exists && errno != ENOENT) fail(name, "cannot be written");
  if (exists && !S_ISREG(named.st_mode)) return {};
  auto end = name;
  std::error_code no_link;
  for (auto target = std::filesystem::read_symlink(end, no_link); !no_link;
       target = std::filesystem::read_symlink(end, no_link))
    end = end.parent_path() / target;  // an absolute target replaces the whole path
  // A link in /proc/self/fd does not lead to its file if that was removed or is in another root.
  struct stat found {};
  if (exists && (::stat(end.c_str(), &found) != 0 || found.st_dev != named.st_dev ||
                 found.st_ino != named.st_ino))
    return {};
  return end;
}

constexpr auto kNotFlushed = "cannot be flushed to the disk";

/// Writes a temporary file in the same folder and renames it. With `sync` the bytes are synced
/// first. Without it, each call uses its own temporary name, so that any number of processes may
/// write concurrently. On failure throws Error and removes the temporary file.
void write_and_rename(const std::filesystem::path& name, std::span<const std::string_view> parts,
                      bool sync) try {
  const auto file = replaceable(name);
  if (!file) {
    const auto out = opened(name, O_WRONLY | O_TRUNC, "cannot be written");
    for (const auto bytes : parts) write_all(out, bytes, name);
    return;
  }
  std::string part = *file;
  part += sync ? ".part" : ".XXXXXX.part";
  const UniqueFd out(repeated([&] {
    return sync ? ::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)
                : ::mkostemps(part.data(), /*suffix=*/5, O_CLOEXEC);
  }));
  if (!out) fail(name, "cannot be written");
  try {
    for (const auto bytes : parts) write_all(out, bytes, part);
    if (sync && repeated([&] { return ::fsync(out.get()); }) != 0) fail(part, kNotFlushed);
    if (rename_path(part, *file)) fail(*file, "cannot be replaced");
  } catch (const Error&) {
    ::unlink(part.c_str());
    throw;
  }
} catch (const DiskFull& full) {
  std::uint64_t bytes = 0;
  for (const auto one : parts) bytes += one.size();
  throw Error(full_disk_text(full, name, bytes));
}

}  // namespace

InputFile::InputFile(std::filesystem::path file)
    : file_(std::move(file)), fd_(opened_to_read(file_)) {
  struct stat about {};
  if (::fstat(fd_.get(), &about) == 0) size_ = static_cast<std::uint64_t>(about.st_size);
}

void InputFile::read(std::uint64_t offset, std::span<char> out) const {
  while (!out.empty()) {
    const auto got = repeated(
        [&] { return ::pread(fd_.get(), out.data(), out.size(), static_cast<off_t>(offset)); });
    if (got < 0) fail(file_, "cannot be read");
    if (got == 0) throw Error(file_.string() + ": became shorter while it was read");
    offset += static_cast<std::uint64_t>(got);
    out = out.subspan(static_cast<std::size_t>(got));
  }
}

SharedBytes map_file(const std::filesystem::path& file) {
  const auto in = opened_to_read(file);
  struct stat about {};
  if (::fstat(in.get(), &about) != 0) fail(file, "cannot be opened");
  return map_file(in, static_cast<std::size_t>(about.st_size), file, "cannot be mapped");
}

SharedBytes map_file(const UniqueFd& fd, std::size_t size, const std::filesystem::path& name,
                     std::string_view what) {
  if (size == 0) return {};
  void* at = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (at == MAP_FAILED) fail(name, what);
  return {{static_cast<const std::byte*>(at), [at, size](const std::byte*) { ::munmap(at, size); }},
          size};
}

std::string read_file(const std::filesystem::path& file, const Reading& wanted) {
  Input in(file, wanted.pipes);
  const auto too_long = [&](std::uint64_t bytes) {
    if (bytes > wanted.max_bytes)
      throw Error(file.string() + ": exceeds " + byte_text(static_cast<double>(wanted.max_bytes)) +
                  ", the maximum size");
  };
  // One byte more than the file's size, so that the end is detected without growing the buffer.
  constexpr std::size_t kHead = std::size_t{1} << 16;
  const auto size = in.size();
  std::string bytes(std::min(size + 1, kHead), '\0');
  for (std::size_t done = 0;;) {
    const auto got = in.read(bytes.data() + done, bytes.size() - done);
    const bool head = done == 0;
    done += got;
    if (head && wanted.check_head) wanted.check_head({bytes.data(), done});
    if (head) too_long(size);
    too_long(done);
    if (got == 0) {
      bytes.resize(done);
      return bytes;
    }
    if (done < bytes.size()) continue;
    bytes.reserve(std::max(size + 1, 2 * done) + wanted.spare);
    bytes.resize(std::max(size + 1, 2 * done));
  }
}

void write_all(const UniqueFd& fd, std::string_view bytes, const std::filesystem::path& file) {
  while (!bytes.empty()) {
    const auto put = repeated([&] { return ::write(fd.get(), bytes.data(), bytes.size()); });
    if (put < 0) fail(file, "cannot be written");
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
}

void write_file_atomically(const std::filesystem::path& file, std::string_view bytes) {
  write_file_atomically(file, std::span(&bytes, 1));
}

void write_file_atomically(const std::filesystem::path& file,
                           std::span<const std::string_view> parts) {
  write_and_rename(file, parts, /*sync=*/true);
}

void replace_file(const std::filesystem::path& file, std::span<const std::string_view> parts) {
  write_and_rename(file, parts, /*sync=*/false);
}

void sync_path(const std::filesystem::path& path) {
  const auto fd = opened(path, O_RDONLY, kNotFlushed);
  if (repeated([&] { return ::fsync(fd.get()); }) != 0) fail(path, kNotFlushed);
}

void sync_file_system(const std::filesystem::path& path) {
  const auto fd = opened(path, O_RDONLY, kNotFlushed);
  if (repeated([&] { return ::syncfs(fd.get()); }) != 0) fail(path, kNotFlushed);
}

void make_writable_folder(const std::filesystem::path& folder) {
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  if (problem) throw Error(folder.string() + ": cannot create this folder: " + problem.message());
  if (!std::filesystem::is_directory(folder)) throw Error(folder.string() + ": is not a folder");
  if (::access(folder.c_str(), W_OK | X_OK) != 0) fail(folder, "cannot write to this folder");
}

namespace {

/// Returns the process that holds the lock of a file or folder, "process 1234 (trainer-torch)", or
/// "another process" if this machine does not list it, as for a process on another host.
std::string holder_of(const UniqueFd& fd) {
  struct stat about {};
  std::ifstream locks("/proc/locks");
  if (::fstat(fd.get(), &about) != 0) return "another process";
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words(line);
    std::string number, kind, mode, access, file;
    long process = 0;
    words >> number >> kind >> mode >> access >> process >> file;  // DEVICE:DEVICE:INODE
    if (kind != "FLOCK" || process <= 0 ||
        file.substr(file.rfind(':') + 1) != std::to_string(about.st_ino))
      continue;
    std::string name;
    std::ifstream comm("/proc/" + std::to_string(process) + "/comm");
    std::getline(comm, name);
    return "process " + std::to_string(process) + (name.empty() ? "" : " (" + name + ")");
  }
  return "another process";
}

}  // namespace

FileLock::FileLock(const std::filesystem::path& path)
    : fd_(repeated([&] {
        return std::filesystem::is_directory(path)
                   ? ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                   : ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
      })) {
  if (fd_ && ::flock(fd_.get(), LOCK_EX | LOCK_NB) == 0) return;
  const int reason = errno;
  throw Error(std::filesystem::absolute(path).lexically_normal().string() +
              (reason == EWOULDBLOCK
                   ? ": in use by " + holder_of(fd_)
                   : std::string(": cannot be locked: ") + std::strerror(reason)));
}

}  // namespace millrace
