#include "millrace/cli/check_gpu/programs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <thread>

#include "millrace/base/errors.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

constexpr auto kNap = std::chrono::milliseconds(10);
constexpr double kGrace = 10;  // seconds in which a killed program has to be gone

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

fs::path own_folder() { return fs::read_symlink("/proc/self/exe").parent_path(); }

/// The last line that `fits`; empty: none.
template <class Fits>
std::string last_line(const fs::path& file, Fits fits) {
  std::ifstream lines(file);
  std::string last;
  for (std::string line; std::getline(lines, line);)
    if (fits(line)) last = line;
  return last;
}

}  // namespace

std::string ProgramEnd::failure() const {
  if (timed_out) return fmt::format("it did not end within {:.0f} s", seconds);
  if (signal != 0) return fmt::format("signal {} ({})", signal, strsignal(signal));
  return exit_code == 0 ? "" : fmt::format("exit code {}", exit_code);
}

Program::Program(const std::vector<std::string>& words, const fs::path& log,
                 const ProgramOptions& options)
    : options_(options), started_(now_s()) {
  std::vector<char*> arguments;
  for (const auto& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  constexpr int kWrite = O_WRONLY | O_CREAT | O_TRUNC;
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, log.c_str(), kWrite, 0644);
  posix_spawn_file_actions_addopen(&files, 2, (log.string() + ".err").c_str(), kWrite, 0644);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  if (options.own_group) posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  const int problem =
      ::posix_spawnp(&id_, arguments[0], &files, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (problem != 0)
    throw Error(fmt::format("{} cannot be started: {}", words[0], std::strerror(problem)));
}

Program::~Program() {
  if (!has_ended()) kill();
  for (const double until = now_s() + kGrace; !has_ended() && now_s() < until;)
    std::this_thread::sleep_for(kNap);
}

bool Program::has_ended() {
  if (!ended_) ended_ = ::waitpid(id_, &status_, WNOHANG) != 0;
  return ended_;
}

void Program::kill() const { ::kill(options_.own_group ? -id_ : id_, SIGKILL); }

ProgramEnd Program::wait(const std::function<bool()>& stopped) {
  ProgramEnd end;
  while (!has_ended()) {
    if (now_s() - started_ > options_.seconds) end.timed_out = true;
    if (end.timed_out || (stopped && stopped())) {
      kill();
      for (const double until = now_s() + kGrace; !has_ended() && now_s() < until;)
        std::this_thread::sleep_for(kNap);
      break;
    }
    std::this_thread::sleep_for(kNap);
  }
  if (options_.own_group) ::kill(-id_, SIGKILL);  // what it has left behind
  end.seconds = now_s() - started_;
  if (ended_ && WIFSIGNALED(status_)) end.exit_code = -1, end.signal = WTERMSIG(status_);
  if (ended_ && WIFEXITED(status_)) end.exit_code = WEXITSTATUS(status_);
  if (!ended_) end.timed_out = true;
  return end;
}

fs::path trainer_program() { return own_folder() / "trainer"; }

fs::path shipped(const std::string& name) {
  const auto installed = own_folder().parent_path() / "share/millrace" / name;
  if (fs::exists(installed)) return installed;
  for (auto folder = own_folder(); folder.has_relative_path(); folder = folder.parent_path())
    if (fs::exists(folder / name)) return folder / name;
  throw Error(fmt::format("there is no {}, which belongs to the installation", installed.string()));
}

std::string last_json(const fs::path& log) {
  return last_line(log, [](const std::string& line) { return line.starts_with('{'); });
}

std::string last_words(const fs::path& file) {
  const auto error =
      last_line(file, [](const std::string& line) { return line.starts_with("trainer: error: "); });
  if (!error.empty()) return error;  // a stack of calls may follow
  return last_line(file, [](const std::string& line) { return !line.empty(); });
}

}  // namespace millrace::cli
