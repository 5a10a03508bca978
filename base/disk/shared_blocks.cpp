#include "millrace/base/disk/shared_blocks.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/repeated.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kStride = std::size_t{1} << 16;  // bytes compared and written at once
// bytes compared first, which usually reveal a difference
constexpr std::size_t kGlance = std::size_t{1} << 12;

[[noreturn]] void fail(const fs::path& file) {
  throw Error(file.string() + ": cannot be written: " + std::strerror(errno));
}

/// Returns whether `file` contains `bytes` at `offset`. A read error counts as a difference.
bool holds(const InputFile& file, std::uint64_t offset, std::string_view bytes) try {
  std::array<char, kStride> read;
  for (std::size_t done = 0; done < bytes.size();) {
    const auto part = bytes.substr(done, done == 0 ? kGlance : kStride);
    file.read(offset + done, std::span(read).first(part.size()));
    if (std::memcmp(read.data(), part.data(), part.size()) != 0) return false;
    done += part.size();
  }
  return true;
} catch (const Error&) {
  return false;
}

void write_at(const UniqueFd& fd, std::uint64_t offset, std::string_view bytes,
              const fs::path& file) {
  while (!bytes.empty()) {
    const auto put = repeated(
        [&] { return ::pwrite(fd.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset)); });
    if (put < 0) fail(file);
    offset += static_cast<std::uint64_t>(put);
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
}

/// Makes the open file share all blocks of `like`. Returns false if that fails; the file is then
/// empty.
bool clone(const UniqueFd& fd, const fs::path& like) {
  const UniqueFd from(::open(like.c_str(), O_RDONLY | O_CLOEXEC));
  return from && ::ioctl(fd.get(), FICLONE, from.get()) == 0;
}

/// Opens `like`; nullopt if it cannot be opened.
std::optional<InputFile> opened(const fs::path& like) try {
  return InputFile(like);
} catch (const Error&) {
  return std::nullopt;
}

}  // namespace

void write_sharing(const fs::path& file, std::span<const std::string_view> parts,
                   const fs::path& like) {
  const UniqueFd fd(repeated(
      [&] { return ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666); }));
  if (!fd) fail(file);
  std::optional<InputFile> shared;
  if (clone(fd, like)) shared = opened(like);
  std::uint64_t at = 0;
  for (auto part : parts)
    for (; !part.empty(); part.remove_prefix(std::min(part.size(), kStride))) {
      const auto bytes = part.substr(0, kStride);
      if (!shared || !holds(*shared, at, bytes)) write_at(fd, at, bytes, file);
      at += bytes.size();
    }
  if (repeated([&] { return ::ftruncate(fd.get(), static_cast<off_t>(at)); }) != 0 ||
      repeated([&] { return ::fsync(fd.get()); }) != 0)
    fail(file);
}

}  // namespace millrace
