// A shell command that runs beside this process.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "millrace/base/files.h"

namespace millrace {

/// For one thread. Leaves no zombie.
class ChildProcess {
 public:
  /// Starts `/bin/sh -c command` in its own process group, with `more` ("NAME=value") added to the
  /// environment and an empty standard input. Throws Error.
  ChildProcess(const std::string& command, const std::vector<std::string>& more);

  /// Ends the command.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Does not wait.
  bool has_ended();

  /// Sends SIGTERM to its group, a second later SIGKILL.
  void end();

  /// "exit code 3" or "signal 15"; empty: success. REQUIRES: it has ended.
  std::string failure() const;

  /// The first 64 KiB that it has written to standard output and standard error.
  std::string output() const;

 private:
  pid_t id_ = -1;
  UniqueFd output_;  // a file without a name
  bool ended_ = false;
  int status_ = 0;
};

}  // namespace millrace
