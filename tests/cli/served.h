// `trainer serve` as a process of its own, beside what the test runs.
#pragma once

#include <csignal>

#include "tests/cli/trainer.h"
#include "tests/support/wait.h"

namespace millrace::testing {

/// Whether a log comes to have a text.
inline bool comes_to_say(const fs::path& log, const std::string& text) {
  return comes_to([&] { return read_text(log).find(text) != std::string::npos; });
}

/// Killed when this goes, or before.
class Served {
 public:
  /// Runs `command`; what it logs is appended to `log`. `endpoint` is an ipc:// one.
  Served(const std::vector<std::string>& command, const fs::path& log) : log_(log) {
    auto arguments = command;
    std::vector<char*> argv;
    for (auto& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 2, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    EXPECT_EQ(posix_spawn(&child_, argv[0], &files, nullptr, argv.data(), environ), 0) << argv[0];
    posix_spawn_file_actions_destroy(&files);
  }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;
  ~Served() { end(SIGKILL); }

  /// Sends a signal and waits for the end; the exit code, -1 where the signal killed it.
  int end(int signal) {
    if (child_ == 0) return -1;
    ::kill(child_, signal);
    int status = 0;
    waitpid(std::exchange(child_, 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  std::string log() const { return read_text(log_); }
  bool says(const std::string& text) const { return comes_to_say(log_, text); }

 private:
  pid_t child_ = 0;
  fs::path log_;
};

}  // namespace millrace::testing
