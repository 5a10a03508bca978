// A folder that appears whole or not at all: filled as `<folder>.part`, renamed at the end.
#pragma once

#include <filesystem>
#include <optional>

#include "millrace/base/file_lock.h"

namespace millrace {

/// Owns `<folder>.part` and removes what is left of it. One thread makes and publishes it; any may
/// write into it.
class PartFolder {
 public:
  /// What to do with a folder of that name.
  enum class Existing {
    refuse,   // it stays, and so does what another process is making at the same time
    replace,  // the new one takes its place, at one instant where the file system can do that
  };

  /// Makes the part, and the folders above it; what a killed process left of one is removed. Throws
  /// Error where the part cannot be made; ConfigError where the folder exists and Error where
  /// another process makes it, if those are refused.
  PartFolder(std::filesystem::path folder, Existing existing);
  PartFolder(const PartFolder&) = delete;
  ~PartFolder();

  /// Where to write.
  const std::filesystem::path& path() const { return part_; }

  /// Gives the folder its name, on the disk too; its files must be there already (sync_path,
  /// sync_file_system). Throws Error.
  void publish();

 private:
  void refuse_existing() const;

  const std::filesystem::path folder_, part_;
  const Existing existing_;
  std::optional<FileLock> lock_;  // on part_
};

}  // namespace millrace
