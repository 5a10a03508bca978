// SIGINT, SIGTERM, SIGHUP and SIGUSR1 as a polite request to stop.
#pragma once

#include <array>
#include <csignal>
#include <string>
#include <string_view>

#include "millrace/base/process/signals.h"

namespace millrace {

/// Handles kStopSignals in its own way while it lives, and restores what was before. A SIGHUP that
/// was ignored (nohup) stays so. Create and destroy on one thread, the last one made first.
class SignalHandling {
 public:
  SignalHandling(const SignalHandling&) = delete;

 protected:
  explicit SignalHandling(void (*handler)(int));
  ~SignalHandling();

 private:
  std::array<struct sigaction, kStopSignals.size()> before_{};
};

/// While one exists, the first signal is noted and a second one kills, unless it is SIGHUP: a
/// terminal that is closed may send that more than once. One at a time.
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

  /// Ends the process after so long, unless this is gone before, with these last words on standard
  /// error: for when all is saved and what still runs may hang.
  static void give_up_after(unsigned seconds, int exit_code, std::string last_words);
};

/// While one exists, the first signal ends the process at once, where nothing can be lost: whatever
/// is half written is cleared away by the next process as after a kill. One at a time.
class ExitAtSignal : public SignalHandling {
 public:
  /// What the process exits with, and says after the signal's name. `why` must live as long.
  ExitAtSignal(int exit_code, std::string_view why);

  /// From now on the process exits with this code and without a word: its work is done.
  static void work_is_done(int exit_code);
};

}  // namespace millrace
