// A file descriptor that closes itself.
#pragma once

#include <unistd.h>

#include <utility>

namespace millrace {

class UniqueFd {
 public:
  UniqueFd() = default;
  /// Owns `fd`; a negative one, as a system call returns it with errno, stands for none.
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~UniqueFd() {
    if (fd_ >= 0) ::close(fd_);
  }

  explicit operator bool() const { return fd_ >= 0; }
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

}  // namespace millrace
