// One LMDB file: values by key, memory-mapped. Any thread.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

struct MDB_env;

namespace millrace {

/// Who else may have the file open.
enum class LmdbUse {
  write,  // nobody: it is made here, and is whole once it has been closed
  read,   // anybody, since nobody changes it
  share,  // other processes, which read and write it too; this process must open it only once
};

/// LMDB checks the sizes and numbers of its pages but not what they hold: who reads a file that may have been damaged
/// checks the pages first (see RecordStore). A file that was cut short is refused, since a mapped page that is missing
/// would end the process. Not to be used by a child of fork() that has not opened it itself.
class LmdbFile {
 public:
  /// `map_bytes`: what the file may grow to; LmdbUse::read: ignored. Throws Error naming the file and the reason.
  LmdbFile(std::filesystem::path file, LmdbUse use, std::size_t map_bytes = 0);
  LmdbFile(const LmdbFile&) = delete;
  LmdbFile& operator=(const LmdbFile&) = delete;
  ~LmdbFile();

  /// Calls `see` with the value, unless there is none; says whether there is. The view is good for the length of the
  /// call; of a file opened with LmdbUse::read, for as long as it stays open.
  bool find(std::string_view key, const std::function<void(std::string_view)>& see) const;

  /// Puts the pairs into the file, all or none. Keys of LmdbUse::write ascend. Returns whether there was room.
  bool put(std::span<const std::pair<std::string, std::string_view>> pairs);

  /// Waits until all is on the disk.
  void sync();

  /// Bytes of the file that hold values or tell where they are.
  std::size_t used_bytes() const;
  /// Bytes of a page.
  std::size_t page_bytes() const;

 private:
  void check_length() const;
  void check(int status, std::string_view what) const;

  std::filesystem::path file_;
  LmdbUse use_;
  MDB_env* env_ = nullptr;
  unsigned table_ = 0;
};

}  // namespace millrace
