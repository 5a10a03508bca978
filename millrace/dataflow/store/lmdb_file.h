// One LMDB file: values by key, memory-mapped, shared with other processes. Any thread.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

struct MDB_env;

namespace millrace {

/// A process must open a file only once. A file that was cut short is refused, since a mapped page
/// that is missing would end the process. Not to be used by a child of fork() that has not opened
/// it itself.
class LmdbFile {
 public:
  /// `map_bytes`: what the file may grow to. Throws Error naming the file and the reason.
  LmdbFile(std::filesystem::path file, std::size_t map_bytes);
  LmdbFile(const LmdbFile&) = delete;
  LmdbFile& operator=(const LmdbFile&) = delete;
  ~LmdbFile();

  /// Calls `see` with the value, unless there is none; says whether there is. The view is good for
  /// the length of the call.
  bool find(std::string_view key, const std::function<void(std::string_view)>& see) const;

  /// Puts the pairs into the file, all or none. Returns whether there was room.
  bool put(std::span<const std::pair<std::string, std::string_view>> pairs);

 private:
  void check_length() const;
  void check(int status, std::string_view what) const;

  std::filesystem::path file_;
  MDB_env* env_ = nullptr;
  unsigned table_ = 0;
};

}  // namespace millrace
