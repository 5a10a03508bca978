// Runs `trainer serve` in its own process.
#pragma once

#include <csignal>

#include "tests/cli/trainer.h"
#include "tests/support/wait.h"

namespace millrace::testing {

/// Waits until the log contains `text`; returns false after the deadline.
inline bool wait_for_text(const fs::path& log, const std::string& text) {
  return wait_until([&] { return read_text(log).find(text) != std::string::npos; });
}

/// A server process that is killed by the destructor or ended by end().
class Served {
 public:
  /// Runs `command` and appends its output to `log`.
  Served(const Words& command, const fs::path& log)
      : child_(spawn(command, {}, log, O_APPEND)), log_(log) {}
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;
  ~Served() { end(SIGKILL); }

  /// Sends a signal and waits for the end. Returns the exit code; -1 if the signal killed it.
  int end(int signal) {
    if (child_ == 0) return -1;
    ::kill(child_, signal);
    int status = 0;
    waitpid(std::exchange(child_, 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  std::string log() const { return read_text(log_); }
  bool wait_for_log(const std::string& text) const { return wait_for_text(log_, text); }

 private:
  pid_t child_ = 0;
  fs::path log_;
};

}  // namespace millrace::testing
