// Handling of SIGINT, SIGTERM, SIGHUP and SIGUSR1 as requests to stop.
#pragma once

#include <array>
#include <csignal>
#include <string>
#include <string_view>

namespace millrace {

/// The signals that request a stop. The system sends SIGHUP when the terminal is closed. mpirun
/// forwards SIGUSR1 to its ranks at once, and Slurm can be configured to send it before a job's
/// time limit.
inline constexpr std::array kStopSignals{SIGINT, SIGTERM, SIGHUP, SIGUSR1};

/// Returns "SIGTERM" and so on; empty for a signal outside kStopSignals. Async-signal-safe.
std::string_view signal_name(int signal);

/// Blocks the stop signals, also across exec, so that early signals stay pending until a handler is
/// installed. Call it first in main.
void hold_stop_signals();
/// Unblocks the stop signals and delivers pending ones.
void release_stop_signals();

/// Makes a write beyond the file size limit (ulimit -f) fail with an error instead of a signal.
void survive_file_size_limit();
/// Makes a write to a pipe or socket without a reader fail with an error instead of a signal.
void survive_broken_pipes();

/// Installs a handler for kStopSignals and restores the previous handlers on destruction. An
/// ignored SIGHUP (nohup) stays ignored. Create and destroy objects on one thread, in nested order.
class SignalHandling {
 public:
  SignalHandling(const SignalHandling&) = delete;

 protected:
  explicit SignalHandling(void (*handler)(int));
  ~SignalHandling();

 private:
  std::array<struct sigaction, kStopSignals.size()> before_{};
};

/// While an object exists, the first signal is recorded and a second one kills the process, except
/// SIGHUP, which a closing terminal may send repeatedly. At most one object may exist at a time.
class StopSignals : public SignalHandling {
 public:
  StopSignals();
  ~StopSignals();

  /// Returns "SIGTERM" and so on; empty = none received. Thread-safe.
  static std::string received();

  /// Returns the signal number; 0 = none received.
  static int number();
  /// Records a signal that another process received.
  static void note(int signal);

  /// Returns the seconds since the signal was received.
  static double seconds_ago();

  /// Ends the process after this timeout and writes `last_words` to standard error, unless this
  /// object is destroyed first. For use when everything is saved and the remaining work may hang.
  static void give_up_after(unsigned seconds, int exit_code, std::string last_words);
};

/// While an object exists, the first signal ends the process at once. For use when no work can be
/// lost and the next process cleans up as after a kill. At most one object may exist at a time.
class ExitAtSignal : public SignalHandling {
 public:
  /// Sets the exit code and the text that is printed after the signal's name. `why` must outlive
  /// this object.
  ExitAtSignal(int exit_code, std::string_view why);

  /// From now on, a signal ends the process with this code and without a message.
  static void work_is_done(int exit_code);
};

}  // namespace millrace
