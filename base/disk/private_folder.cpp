#include "millrace/base/disk/private_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "millrace/base/errors.h"
#include "millrace/base/repeated.h"

namespace millrace {

UniqueFd open_private_folder(const char* folder) {
  if (::mkdir(folder, 0700) != 0 && errno != EEXIST) return {};
  UniqueFd fd(
      repeated([&] { return ::open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC); }));
  struct stat state {};
  if (!fd || ::fstat(fd.get(), &state) != 0) return {};
  if (state.st_uid != ::geteuid() || (state.st_mode & 022) != 0) {
    errno = EPERM;
    return {};
  }
  if ((state.st_mode & 077) != 0 && ::fchmod(fd.get(), 0700) != 0) return {};
  return fd;
}

void make_private_folder(const std::filesystem::path& folder) {
  if (open_private_folder(folder.c_str())) return;
  const int reason = errno;
  const auto why = reason == EPERM
                       ? std::string("belongs to another user, or others may write into it")
                   : reason == ENOTDIR || reason == ELOOP
                       ? std::string("is a file or a symbolic link")
                       : std::string("cannot be made or opened (") + std::strerror(reason) + ")";
  throw Error(folder.string() + ": is not a folder of this user alone: " + why +
              "; nothing in it is read or written. Remove it, if need be as its owner or root");
}

}  // namespace millrace
