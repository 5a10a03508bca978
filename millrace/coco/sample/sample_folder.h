// A folder that appears whole or not at all: filled as `<folder>.part`, renamed at the end.
#pragma once

#include <filesystem>
#include <optional>

#include "millrace/base/file_lock.h"

namespace millrace::coco {

/// Owns `<folder>.part` and removes it unless it was published. One thread makes and publishes it;
/// any may write into it.
class PartFolder {
 public:
  /// Throws Error where `folder` exists, cannot be made, or is being made by another process. What
  /// a killed process left behind is cleared away.
  explicit PartFolder(std::filesystem::path folder);
  PartFolder(const PartFolder&) = delete;
  ~PartFolder();

  const std::filesystem::path& path() const { return part_; }

  /// Flushes everything to the disk and gives the folder its name. Throws Error.
  void publish();

 private:
  void refuse_existing() const;

  std::filesystem::path folder_, part_;
  std::optional<FileLock> lock_;  // on part_
};

}  // namespace millrace::coco
