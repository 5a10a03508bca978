// Where a run keeps its files, and which run a training goes on with.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "millrace/base/config.h"
#include "millrace/base/files.h"

namespace millrace {

/// Whether a training goes on with a run that is there.
enum class Resume {
  no,        // it starts one
  required,  // that there is none is an error
  if_any,    // it starts one where there is none
};

/// What a training is told apart from others by: runs of one configuration file belong together.
struct RunIdentity {
  std::string name;                   // the stem of the file: its run folders are <output>/<name>-N
  std::filesystem::path config_file;  // absolute
  const Config& config;               // complete
};

RunIdentity identity_of(const std::filesystem::path& config_file, const Config& config);

/// The run to go on with, which has a checkpoint: `output` itself where that is the folder of a
/// run, else the run with the highest number among those in it that belong to `mine`. None where
/// one is to be started; `output` can be written to then. Folders that no run has made are left
/// alone. Throws ConfigError saying what was found, and why nothing fits.
std::optional<std::filesystem::path> find_run(const std::filesystem::path& output,
                                              const RunIdentity& mine, Resume resume);

/// Makes `output`/name-N with the N behind the highest one of that name. Throws Error.
std::filesystem::path make_run_folder(const std::filesystem::path& output, const std::string& name);

/// The folder of a run, which no other process writes to while this lives.
class RunFolder {
 public:
  /// Throws Error where another process holds it.
  explicit RunFolder(std::filesystem::path folder);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  /// From now on the log also goes to its log.txt, what was logged before too.
  void keep_log();
  /// Removes the folder with all that is in it.
  void remove();

 private:
  std::filesystem::path path_;
  FileLock lock_;
};

}  // namespace millrace
