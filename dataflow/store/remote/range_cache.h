// Stores parts of remote files in a local folder.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace millrace {

/// Stores parts until the folder is full, and then keeps those: an epoch reads each image once, so
/// replacing parts would not help. Threads and processes may share a folder; it may then exceed its
/// limit by what they write concurrently.
class RangeCache {
 public:
  /// Creates the folder. Throws Error.
  RangeCache(std::filesystem::path folder, std::uint64_t most_bytes);

  /// Returns the part stored under this key; nullopt if not found. The caller must check it.
  std::optional<std::string> get(const std::string& key) const;
  /// Stores a part. Never throws; a part that cannot be stored is fetched again later.
  void put(const std::string& key, std::string_view bytes);
  void remove(const std::string& key);

 private:
  std::filesystem::path file_of(const std::string& key) const;

  const std::filesystem::path folder_;
  const std::uint64_t most_bytes_;
  std::atomic<std::uint64_t> bytes_ = 0;
  std::atomic<bool> reported_ = false;  // the write error was logged
};

}  // namespace millrace
