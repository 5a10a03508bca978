#include "base/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include "base/errors.h"

namespace millrace {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, std::string_view what) {
  throw Error(path.string() + ": " + std::string(what) + ": " + std::strerror(errno));
}

/// Owns a file descriptor.
struct UniqueFd {
  int fd;
  explicit UniqueFd(int opened) : fd(opened) {}
  UniqueFd(const UniqueFd&) = delete;
  ~UniqueFd() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

std::string read_file(const std::filesystem::path& file) {
  const UniqueFd in(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (in.fd < 0) fail(file, "cannot be opened");
  std::error_code ignored;
  const auto size = std::filesystem::file_size(file, ignored);
  std::string bytes(ignored ? 0 : size, '\0');
  std::size_t done = 0;
  while (true) {
    if (done == bytes.size()) bytes.resize(bytes.size() + (bytes.empty() ? 4096 : 1));
    const auto got = ::read(in.fd, bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(file, "cannot be read");
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

void write_file_atomically(const std::filesystem::path& file, std::string_view bytes) {
  auto part = file;
  part += ".part";
  {
    const UniqueFd out(::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (out.fd < 0) fail(part, "cannot be written");
    for (std::size_t done = 0; done < bytes.size();) {
      const auto put = ::write(out.fd, bytes.data() + done, bytes.size() - done);
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) fail(part, "cannot be written");
      done += static_cast<std::size_t>(put);
    }
    if (::fsync(out.fd) != 0) fail(part, "cannot be flushed to the disk");
  }
  if (::rename(part.c_str(), file.c_str()) != 0) fail(file, "cannot be replaced");
}

void sync_path(const std::filesystem::path& path) {
  const UniqueFd handle(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (handle.fd < 0 || ::fsync(handle.fd) != 0) fail(path, "cannot be flushed to the disk");
}

void make_writable_folder(const std::filesystem::path& folder) {
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  if (problem) throw Error(folder.string() + ": this folder cannot be made: " + problem.message());
  if (!std::filesystem::is_directory(folder)) throw Error(folder.string() + ": is not a folder");
  if (::access(folder.c_str(), W_OK | X_OK) != 0) fail(folder, "this folder cannot be written to");
}

}  // namespace millrace
