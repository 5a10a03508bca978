// Wakes a thread that waits for sockets.
#pragma once

#include <sys/eventfd.h>

#include <cstdint>
#include <stdexcept>

#include "millrace/base/unique_fd.h"

namespace millrace::serving {

class WakeUpCall {
 public:
  WakeUpCall() {
    if (!fd_) throw std::runtime_error("no eventfd is to be had");
  }

  /// Any thread, any number of times.
  void ring() const { ::eventfd_write(fd_.get(), 1); }
  /// Whether somebody has rung since the last call.
  bool answer() const {
    eventfd_t rings = 0;
    return ::eventfd_read(fd_.get(), &rings) == 0;
  }
  /// Can be read once somebody has rung.
  int descriptor() const { return fd_.get(); }

 private:
  const UniqueFd fd_{::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
};

}  // namespace millrace::serving
