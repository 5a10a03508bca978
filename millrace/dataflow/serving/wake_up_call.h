// Wakes a thread that waits for sockets.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>

namespace millrace::serving {

class WakeUpCall {
 public:
  WakeUpCall() {
    if (descriptor_ < 0) throw std::runtime_error("no eventfd is to be had");
  }
  WakeUpCall(const WakeUpCall&) = delete;
  ~WakeUpCall() { ::close(descriptor_); }

  /// Any thread, any number of times.
  void ring() const { ::eventfd_write(descriptor_, 1); }
  /// Whether somebody has rung since the last call.
  bool answer() const {
    eventfd_t rings = 0;
    return ::eventfd_read(descriptor_, &rings) == 0;
  }
  /// Can be read once somebody has rung.
  int descriptor() const { return descriptor_; }

 private:
  const int descriptor_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
};

}  // namespace millrace::serving
