#include "millrace/dataflow/serving/socket_file.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "millrace/base/errors.h"
#include "millrace/base/unique_fd.h"

namespace millrace::serving {
namespace {

constexpr std::string_view kScheme = "ipc://";

bool is_listened_at(const std::string& file) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (file.size() >= sizeof(address.sun_path)) return false;  // libzmq will say so
  file.copy(address.sun_path, file.size());
  const UniqueFd client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return client &&
         ::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

}  // namespace

SocketFile::SocketFile(const std::string& endpoint) {
  if (!endpoint.starts_with(kScheme)) return;
  const auto name = endpoint.substr(kScheme.size());
  if (name.empty() || name == "*" || name.front() == '@') return;  // '@': a name without a file
  file_ = name;
  struct stat there {};
  if (::lstat(file_.c_str(), &there) != 0) return;
  if (!S_ISSOCK(there.st_mode))
    throw ConfigError(
        fmt::format("cannot listen at {}: {} is there already and is no socket; name another file",
                    endpoint, name));
  if (is_listened_at(name))
    throw ConfigError(
        fmt::format("cannot listen at {}: another server does; name another file", endpoint));
}

void SocketFile::note() {
  struct stat made {};
  if (file_.empty() || ::lstat(file_.c_str(), &made) != 0) return;
  device_ = made.st_dev;
  inode_ = made.st_ino;
}

SocketFile::~SocketFile() {
  struct stat there {};
  if (inode_ != 0 && ::lstat(file_.c_str(), &there) == 0 && there.st_ino == inode_ &&
      there.st_dev == device_)
    ::unlink(file_.c_str());
}

}  // namespace millrace::serving
