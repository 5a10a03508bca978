// SIGINT, SIGTERM, SIGHUP and SIGUSR1 as a request to stop.
#pragma once

#include <array>
#include <csignal>
#include <string>
#include <string_view>

namespace millrace {

/// SIGHUP comes when the terminal is closed. SIGUSR1 is what mpirun forwards to its ranks at once,
/// and what Slurm is told to send before a job's time is up.
inline constexpr std::array kStopSignals{SIGINT, SIGTERM, SIGHUP, SIGUSR1};

/// "SIGTERM"; empty for any other signal. Safe in a signal handler.
std::string_view signal_name(int signal);

/// Blocks the stop signals, also across exec: early ones wait until a handler is chosen. For the
/// first line of main.
void hold_stop_signals();
/// Unblocks them, and delivers those that wait.
void release_stop_signals();

/// A write beyond the allowed file size (ulimit -f) then fails with an error instead of a signal.
void survive_file_size_limit();
/// So does a write to a pipe or socket whose reader is gone.
void survive_broken_pipes();

/// Handles kStopSignals with its own handler while it lives, then restores the previous ones. A
/// SIGHUP that is ignored (nohup) stays ignored. Create and destroy on one thread, in nested order.
class SignalHandling {
 public:
  SignalHandling(const SignalHandling&) = delete;

 protected:
  explicit SignalHandling(void (*handler)(int));
  ~SignalHandling();

 private:
  std::array<struct sigaction, kStopSignals.size()> before_{};
};

/// While one exists, the first signal is noted and a second one kills, except SIGHUP, which a
/// closed terminal may send more than once. One at a time.
class StopSignals : public SignalHandling {
 public:
  StopSignals();
  ~StopSignals();

  /// "SIGTERM"; empty: none came so far. Any thread.
  static std::string received();

  /// The same as a number; 0: none.
  static int number();
  /// Notes a signal that another process received.
  static void note(int signal);

  /// Seconds since it came.
  static double seconds_ago();

  /// Ends the process after this timeout, with these last words on standard error, unless this
  /// object is destroyed before: for when all is saved and what still runs may hang.
  static void give_up_after(unsigned seconds, int exit_code, std::string last_words);
};

/// While one exists, the first signal ends the process at once: for when nothing can be lost, and
/// the next process clears up as after a kill. One at a time.
class ExitAtSignal : public SignalHandling {
 public:
  /// The exit code, and what to say after the signal's name. `why` must outlive this.
  ExitAtSignal(int exit_code, std::string_view why);

  /// From now on the process exits with this code and says nothing.
  static void work_is_done(int exit_code);
};

}  // namespace millrace
