// Batches in memory that a data server and its consumers on one host share. It lies in files
// without names: nothing is left behind, whoever dies. Processes of the same user open them through
// /proc, as long as the server keeps them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "millrace/dataflow/image/buffer_pool.h"
#include "millrace/dataflow/serving/messages.h"
#include "millrace/dataflow/store/batch_codec.h"

namespace millrace::serving {

/// A server's side. Thread-safe.
class SharedMemory {
 public:
  SharedMemory();

  /// For the pool of batches; each buffer is a file, or plain memory where there can be no more
  /// files. Works on after this is gone.
  MemorySource source() const;
  /// Where so many bytes lie that begin a buffer; nothing for other memory.
  std::optional<SharedPiece> find(const void* buffer, std::size_t bytes, std::int64_t piece) const;
  /// What a consumer must be able to read; nothing where nothing can be shared.
  std::optional<SharedFile> probe() const;

 private:
  struct Files;
  std::shared_ptr<Files> files_;
  std::shared_ptr<void> probe_;
  std::uint64_t token_;
};

/// A consumer's view of the memory of one server process.
class SharedView {
 public:
  /// Nothing where this process cannot see it.
  static std::unique_ptr<SharedView> open(const SharedFile& probe);

  /// Of the probe: of the same server process.
  std::uint64_t token() const { return probe_.token; }
  /// Whether that process still is.
  bool is_there() const { return open(probe_) != nullptr; }

  /// The bytes of a piece; once they are let go, it can be released. Throws DataError where there
  /// is no such piece.
  Frame take(const SharedPiece& piece);
  /// Pieces that were let go since the last call.
  std::vector<std::int64_t> take_released();
  /// Those that were not yet.
  std::vector<std::int64_t> held() const;

 private:
  explicit SharedView(const SharedFile& probe) : probe_(probe) {}

  struct Pieces {
    std::mutex mutex;
    std::set<std::int64_t> held;
    std::vector<std::int64_t> released;
  };
  const SharedFile probe_;
  std::map<std::uint64_t, std::shared_ptr<std::uint8_t[]>> maps_;  // by file
  std::shared_ptr<Pieces> pieces_ = std::make_shared<Pieces>();
};

/// Whether a process is there.
bool is_running(std::int64_t process);

}  // namespace millrace::serving
