// SIGINT and SIGTERM as a polite request to stop.
#pragma once

#include <csignal>
#include <string>

namespace millrace {

/// While one exists, the first SIGINT or SIGTERM is noted and a second one does what it would have
/// done before. One at a time; create and destroy on one thread.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// "SIGTERM", or empty while none came. Any thread.
  static std::string received();

 private:
  struct sigaction interrupt_before_ {};
  struct sigaction terminate_before_ {};
};

}  // namespace millrace
