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
  const auto why =
      reason == EPERM ? std::string("it belongs to another user, or other users can write to it")
      : reason == ENOTDIR || reason == ELOOP
          ? std::string("it is a file or a symbolic link")
          : std::string("it cannot be created or opened (") + std::strerror(reason) + ")";
  throw Error(folder.string() + ": not a private folder of this user: " + why +
              "; it is not used. Delete it (as its owner or root if necessary)");
}

}  // namespace millrace
