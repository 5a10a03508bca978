// SIGINT and SIGTERM as a polite request to stop.
#pragma once

#include <csignal>
#include <string>

namespace millrace {

/// Handles both signals in its own way while it lives, and restores what was before. Create and destroy on one thread,
/// the last one made first.
class SignalHandling {
 public:
  SignalHandling(const SignalHandling&) = delete;

 protected:
  explicit SignalHandling(void (*handler)(int));
  ~SignalHandling();

 private:
  struct sigaction interrupt_before_ {};
  struct sigaction terminate_before_ {};
};

/// While one exists, the first signal is noted and a second one kills. One at a time.
class StopSignals : public SignalHandling {
 public:
  StopSignals();
  ~StopSignals();

  /// "SIGTERM", or empty while none came. Any thread.
  static std::string received();

  /// How long ago that was, in seconds.
  static double seconds_ago();

  /// Ends the process with exit code 3 after so long, unless this is gone before: for when all is saved and what still
  /// runs may hang.
  static void give_up_after(unsigned seconds);
};

/// While one exists, the first signal ends the process at once with exit code 3: where no step has been taken, nothing
/// can be lost, and whatever is half written is cleared away by the next process as after a kill.
class ExitAtSignal : public SignalHandling {
 public:
  ExitAtSignal();
};

}  // namespace millrace
