// Parts of files from elsewhere, kept in a folder of this machine.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace millrace {

/// Keeps parts until the folder is full, and then the same ones: an epoch takes each image once, so
/// that replacing one by another has no use. Several threads and processes may share a folder;
/// then it may grow beyond its bound by what they write at once.
class RangeCache {
 public:
  /// Makes the folder. Throws Error.
  RangeCache(std::filesystem::path folder, std::uint64_t most_bytes);

  /// The part that is kept under this name; the caller checks it.
  std::optional<std::string> get(const std::string& key) const;
  /// Never throws: what cannot be kept is fetched again.
  void put(const std::string& key, std::string_view bytes);
  void remove(const std::string& key);

 private:
  std::filesystem::path file_of(const std::string& key) const;

  const std::filesystem::path folder_;
  const std::uint64_t most_bytes_;
  std::atomic<std::uint64_t> bytes_ = 0;
  std::atomic<bool> reported_ = false;  // that it cannot be written to
};

}  // namespace millrace
