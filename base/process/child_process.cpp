#include "millrace/base/process/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <thread>

#include "millrace/base/errors.h"

namespace millrace {
namespace {

constexpr std::size_t kMostOutput = 64 << 10;  // bytes
constexpr auto kGrace = std::chrono::seconds(1);
constexpr auto kNap = std::chrono::milliseconds(5);

UniqueFd file_without_name() {
  auto name = (std::filesystem::temp_directory_path() / "millrace-command-XXXXXX").string();
  UniqueFd file(::mkostemp(name.data(), O_CLOEXEC));
  if (!file) throw Error(name + ": cannot be created: " + std::strerror(errno));
  ::unlink(name.c_str());
  return file;
}

/// Returns whether `more` also sets the variable "NAME=value". With two values for a variable,
/// shells and getenv use different ones.
bool is_set_by(const std::vector<std::string>& more, std::string_view variable) {
  const auto name = variable.substr(0, variable.find('=') + 1);
  return std::ranges::any_of(more, [&](const auto& own) { return own.starts_with(name); });
}

}  // namespace

ChildProcess::ChildProcess(const std::string& command, const std::vector<std::string>& more)
    : output_(file_without_name()) {
  std::vector<char*> environment;
  for (const auto& variable : more) environment.push_back(const_cast<char*>(variable.c_str()));
  for (char** variable = environ; *variable; ++variable)
    if (!is_set_by(more, *variable)) environment.push_back(*variable);
  environment.push_back(nullptr);
  char* arguments[] = {const_cast<char*>("sh"), const_cast<char*>("-c"),
                       const_cast<char*>(command.c_str()), nullptr};

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, output_.get(), 1);
  posix_spawn_file_actions_adddup2(&files, output_.get(), 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  const int problem =
      ::posix_spawn(&id_, "/bin/sh", &files, &attributes, arguments, environment.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (problem == 0) return;
  throw Error("cannot start /bin/sh: " + std::string(std::strerror(problem)));
}

ChildProcess::~ChildProcess() { end(); }

bool ChildProcess::has_ended() {
  if (!ended_) ended_ = ::waitpid(id_, &status_, WNOHANG) != 0;
  return ended_;
}

void ChildProcess::end() {
  if (has_ended()) return;
  ::kill(-id_, SIGTERM);
  const auto last = std::chrono::steady_clock::now() + kGrace;
  while (!has_ended()) {
    if (std::chrono::steady_clock::now() > last) ::kill(-id_, SIGKILL);
    std::this_thread::sleep_for(kNap);
  }
}

std::string ChildProcess::failure() const {
  if (WIFSIGNALED(status_)) return "signal " + std::to_string(WTERMSIG(status_));
  const int code = WEXITSTATUS(status_);
  return code == 0 ? "" : "exit code " + std::to_string(code);
}

std::string ChildProcess::output() const {
  std::string text(kMostOutput, '\0');
  const auto size = ::pread(output_.get(), text.data(), text.size(), 0);
  text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return text;
}

}  // namespace millrace
