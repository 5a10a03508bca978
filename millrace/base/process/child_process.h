// A shell command that runs beside this process.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "millrace/base/unique_fd.h"

namespace millrace {

/// For one thread. Leaves no zombie.
class ChildProcess {
 public:
  /// Starts `/bin/sh -c command` in a process group of its own, with `more` ("NAME=value") added to
  /// the environment and nothing to read. Throws Error.
  ChildProcess(const std::string& command, const std::vector<std::string>& more);

  /// Ends what still runs.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Does not wait.
  bool has_ended();

  /// Asks its whole group to end (SIGTERM), a second later the system ends it.
  void end();

  /// How it failed, "exit code 3" or "signal 15"; empty: it succeeded. Once it has ended.
  std::string failure() const;

  /// The first 64 KiB of what it has written so far to standard output and standard error.
  std::string output() const;

 private:
  pid_t id_ = -1;
  UniqueFd output_;  // a file without a name
  bool ended_ = false;
  int status_ = 0;
};

}  // namespace millrace
