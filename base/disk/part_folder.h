// A folder that is either complete or absent. It is filled as `<folder>.part` and renamed at the
// end.
#pragma once

#include <filesystem>
#include <optional>

#include "millrace/base/files.h"

namespace millrace {

/// Owns `<folder>.part` and removes it unless it was published. One thread creates and publishes
/// the folder; any thread may write files into it.
class PartFolder {
 public:
  /// The action if a folder of that name already exists.
  enum class Existing {
    refuse,   // fail, also if another process is creating it now
    replace,  // replace it, atomically if the file system supports that
  };

  /// Creates the .part folder and its parents, and removes files left in it by a killed process.
  /// Throws Error if it cannot be created. With `refuse`, throws ConfigError if the folder exists,
  /// and Error if another process is creating it.
  PartFolder(std::filesystem::path folder, Existing existing);
  PartFolder(const PartFolder&) = delete;
  ~PartFolder();

  /// The .part folder to write into.
  const std::filesystem::path& path() const { return part_; }

  /// Renames the .part folder to its final name and syncs the rename. REQUIRES: its files are on
  /// the disk (sync_path, sync_file_system). Throws Error.
  void publish();

 private:
  void refuse_existing() const;

  const std::filesystem::path folder_, part_;
  const Existing existing_;
  std::optional<FileLock> lock_;  // lock on part_
};

}  // namespace millrace
