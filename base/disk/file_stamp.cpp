#include "millrace/base/disk/file_stamp.h"

#include <sys/stat.h>

namespace millrace {

std::optional<FileStamp> stamp_of(const std::filesystem::path& file) {
  struct stat about {};
  if (::stat(file.c_str(), &about) != 0) return {};
  const auto ns = [](const timespec& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; };
  return FileStamp{about.st_dev, about.st_ino, static_cast<std::uint64_t>(about.st_size),
                   ns(about.st_mtim), ns(about.st_ctim)};
}

}  // namespace millrace
