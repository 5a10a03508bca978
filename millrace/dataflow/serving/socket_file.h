// The file of an ipc:// endpoint.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

namespace millrace::serving {

/// A server's own while this lives, and gone with it. libzmq puts its socket in the place of
/// whatever is there, and leaves it behind.
class SocketFile {
 public:
  /// Before the endpoint is bound. Throws ConfigError where something else than a socket has that
  /// name, or another server listens there. Endpoints without a file are none of its business.
  explicit SocketFile(const std::string& endpoint);
  /// Once it is bound.
  void note();
  /// Leaves a file that is no longer this server's.
  ~SocketFile();
  SocketFile(const SocketFile&) = delete;

 private:
  std::filesystem::path file_;  // empty: none
  dev_t device_ = 0;
  ino_t inode_ = 0;  // 0: not noted
};

}  // namespace millrace::serving
