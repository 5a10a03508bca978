// Folders of runs, and the choice of the run that a training resumes.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "millrace/base/config.h"
#include "millrace/base/files.h"

namespace millrace {

/// The values of --resume: what a training does with an existing run.
enum class Resume {
  no,
  required,  // resumes a run; an error if there is no run
  if_any,    // resumes a run, or starts a new run if not found
};

/// Identifies the runs of one configuration file.
struct RunIdentity {
  std::string name;                   // stem of the file; run folders are <output>/<name>-N
  std::filesystem::path config_file;  // absolute path
  const Config& config;               // complete configuration
};

RunIdentity identity_of(const std::filesystem::path& config_file, const Config& config);

/// Returns the run to resume, which has a checkpoint: `output` itself if it is a run's folder, else
/// the run of `mine` with the highest number in `output`. nullopt if a new run is to be started;
/// then `output` is writable. Throws ConfigError that lists what was found and why it does not fit.
std::optional<std::filesystem::path> find_run(const std::filesystem::path& output,
                                              const RunIdentity& mine, Resume resume);

/// Creates `output`/name-N with the next free N. Throws Error.
std::filesystem::path make_run_folder(const std::filesystem::path& output, const std::string& name);

/// The folder of a run, locked during the object's lifetime.
class RunFolder {
 public:
  /// Throws Error if another process has locked the folder.
  explicit RunFolder(std::filesystem::path folder);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  /// Also writes the log to log.txt in the folder, including earlier messages.
  void keep_log();
  /// Deletes the folder.
  void remove();

 private:
  std::filesystem::path path_;
  FileLock lock_;
};

}  // namespace millrace
