#include "millrace/base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <cstring>

#include "millrace/base/errors.h"

namespace millrace {

FileLock::FileLock(const std::filesystem::path& path)
    : fd_(std::filesystem::is_directory(path)
              ? ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
              : ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
  if (fd_ && ::flock(fd_.get(), LOCK_EX | LOCK_NB) == 0) return;
  const int reason = errno;
  throw Error(path.string() + (reason == EWOULDBLOCK
                                   ? ": another process is writing it"
                                   : std::string(": cannot be locked: ") + std::strerror(reason)));
}

}  // namespace millrace
