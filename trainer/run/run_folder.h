// Where a run keeps its files, and which run a training resumes.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "millrace/base/config.h"
#include "millrace/base/files.h"

namespace millrace {

/// Whether a training goes on with a run that is there.
enum class Resume {
  no,
  required,  // an error if there is none
  if_any,    // starts one if there is none
};

/// Runs of one configuration file belong together.
struct RunIdentity {
  std::string name;                   // the stem of the file: its run folders are <output>/<name>-N
  std::filesystem::path config_file;  // absolute
  const Config& config;               // complete
};

RunIdentity identity_of(const std::filesystem::path& config_file, const Config& config);

/// The run to resume, which has a checkpoint: `output` itself if that is the folder of a run, else
/// the run of `mine` with the highest number in it. Nothing if a run is to be started; `output` can
/// be written to then. Throws ConfigError saying what was found, and why nothing fits.
std::optional<std::filesystem::path> find_run(const std::filesystem::path& output,
                                              const RunIdentity& mine, Resume resume);

/// Makes `output`/name-N with the next N of that name. Throws Error.
std::filesystem::path make_run_folder(const std::filesystem::path& output, const std::string& name);

/// The folder of a run, locked while this lives.
class RunFolder {
 public:
  /// Throws Error if another process holds it.
  explicit RunFolder(std::filesystem::path folder);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  /// The log also goes to its log.txt, including what was logged before.
  void keep_log();
  /// Deletes the folder.
  void remove();

 private:
  std::filesystem::path path_;
  FileLock lock_;
};

}  // namespace millrace
