// Runs programs with a timeout, and finds what is installed beside this one.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace millrace::cli {

/// How a program ended.
struct ProgramEnd {
  bool timed_out = false;
  int exit_code = 0;  // -1: killed by `signal`
  int signal = 0;
  double seconds = 0;

  bool ok() const { return !timed_out && exit_code == 0; }
  /// "exit code 3", "signal 11 (Segmentation fault)", "it did not end within 60 s"; empty: ok().
  std::string failure() const;
};

struct ProgramOptions {
  double seconds = 60;  // timeout, after which it is killed
  /// A process group of its own, which is killed as a whole when the program ends, so that nothing
  /// that it has started is left; false: in the group of this process.
  bool own_group = false;
};

/// A program that runs beside this one, its standard output and standard error in files: `log` and
/// `log`.err. Killed when this object is destroyed.
class Program {
 public:
  /// `words`: the program, looked for in PATH if it has no folder, and its arguments. Throws Error
  /// if the program cannot be started.
  Program(const std::vector<std::string>& words, const std::filesystem::path& log,
          const ProgramOptions& options);
  Program(const Program&) = delete;
  ~Program();

  /// Waits for the end, or kills it at its timeout, or once `stopped()`. A program that cannot be
  /// killed, since it hangs in a driver, is left behind after a few seconds.
  ProgramEnd wait(const std::function<bool()>& stopped = {});

 private:
  bool has_ended();
  void kill() const;

  ProgramOptions options_;
  pid_t id_ = -1;
  double started_ = 0;
  bool ended_ = false;
  int status_ = 0;
};

/// The program that a user starts, beside the file of this process.
std::filesystem::path trainer_program();

/// A file or folder that is shipped with the program, such as "configs/maskrcnn.toml": from the
/// installation's share/millrace, else from the source tree around a build folder. Throws Error.
std::filesystem::path shipped(const std::string& name);

/// The last line of a file that begins with {, which is where a command with --json puts its
/// result; empty: there is none.
std::string last_json(const std::filesystem::path& log);

/// What a program has said last, for messages: the last line that begins with "trainer: error: ",
/// else the last that is not empty. Empty: there is none.
std::string last_words(const std::filesystem::path& file);

}  // namespace millrace::cli
