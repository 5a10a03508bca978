// A program that runs beside this process and never outlives it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "millrace/base/files.h"

namespace millrace {

/// Where a program's standard streams go: open files, borrowed while it is started.
struct ProgramOutput {
  const UniqueFd& out;
  const UniqueFd& err;
};

/// For one thread, which must live as long as the program: the system kills the program (SIGKILL)
/// when that thread ends, however it ends. Leaves no zombie.
class BoundProgram {
 public:
  /// Starts the program `words[0]`, a path, with its arguments, in a process group of its own (a
  /// terminal's Ctrl-C does not reach it) and with an empty standard input. A program that cannot
  /// be executed ends with exit code 127 and says why in `err`. Throws Error.
  BoundProgram(const std::vector<std::string>& words, const ProgramOutput& output);

  /// Kills it.
  ~BoundProgram();
  BoundProgram(BoundProgram&& other) noexcept;
  BoundProgram& operator=(BoundProgram&&) = delete;

  /// Does not wait.
  bool has_ended();
  void wait();

  /// Sends it a signal; nothing once it has ended.
  void signal(int number);

  /// -1: killed by a signal. REQUIRES: it has ended.
  int exit_code() const;
  /// "exit code 3" or "signal 9 (Killed)"; empty: success. REQUIRES: it has ended.
  std::string failure() const;

 private:
  pid_t id_ = -1;
  bool ended_ = false;
  int status_ = 0;
};

}  // namespace millrace
