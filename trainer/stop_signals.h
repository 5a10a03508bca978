// SIGINT, SIGTERM and SIGUSR1 as a polite request to stop. SIGUSR1 is what mpirun hands on to its ranks at once, and what
// Slurm is told to send before a job's time is up.
#pragma once

#include <array>
#include <csignal>
#include <string>

namespace millrace {

/// Handles these signals in its own way while it lives, and restores what was before. Create and destroy on one thread,
/// the last one made first.
class SignalHandling {
 public:
  SignalHandling(const SignalHandling&) = delete;

 protected:
  explicit SignalHandling(void (*handler)(int));
  ~SignalHandling();

 private:
  std::array<struct sigaction, 3> before_{};
};

/// While one exists, the first signal is noted and a second one kills. One at a time.
class StopSignals : public SignalHandling {
 public:
  StopSignals();
  ~StopSignals();

  /// "SIGTERM", or empty while none came. Any thread.
  static std::string received();

  /// The same as a number, 0 while none came; and to note one that came to another process.
  static int number();
  static void note(int signal);

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
