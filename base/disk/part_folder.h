// A folder that appears complete or not at all: filled as `<folder>.part`, renamed at the end.
#pragma once

#include <filesystem>
#include <optional>

#include "millrace/base/files.h"

namespace millrace {

/// Owns `<folder>.part` and removes what is left of it. One thread makes and publishes it; any may
/// write into it.
class PartFolder {
 public:
  /// What to do with a folder of that name.
  enum class Existing {
    refuse,   // keep it, or what another process is making now
    replace,  // replace it, atomically if the file system can
  };

  /// Makes the part and the folders above it; removes what a killed process left. Throws Error if
  /// the part cannot be made; to `refuse`, ConfigError if the folder exists, Error if another
  /// process makes it.
  PartFolder(std::filesystem::path folder, Existing existing);
  PartFolder(const PartFolder&) = delete;
  ~PartFolder();

  /// Where to write.
  const std::filesystem::path& path() const { return part_; }

  /// Gives the folder its name, on the disk too. REQUIRES: its files are there (sync_path,
  /// sync_file_system). Throws Error.
  void publish();

 private:
  void refuse_existing() const;

  const std::filesystem::path folder_, part_;
  const Existing existing_;
  std::optional<FileLock> lock_;  // on part_
};

}  // namespace millrace
