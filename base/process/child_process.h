// A shell command that runs as a child process.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "millrace/base/files.h"

namespace millrace {

/// Not thread-safe. Leaves no zombie.
class ChildProcess {
 public:
  /// Starts `/bin/sh -c command` in its own process group, with an empty standard input and with
  /// the variables `more` ("NAME=value") added to the environment. Throws Error.
  ChildProcess(const std::string& command, const std::vector<std::string>& more);

  /// Ends the command as end() does.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Returns at once.
  bool has_ended();

  /// Sends SIGTERM to the process group and, one second later, SIGKILL. Returns when the command
  /// has ended.
  void end();

  /// Returns "exit code 3" or "signal 15"; empty = success. REQUIRES: has_ended().
  std::string failure() const;

  /// Returns the first 64 KiB of standard output and standard error.
  std::string output() const;

 private:
  pid_t id_ = -1;
  UniqueFd output_;  // anonymous temporary file
  bool ended_ = false;
  int status_ = 0;
};

}  // namespace millrace
