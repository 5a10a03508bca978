// Memory of batches that a data server shares with consumers on its host: unnamed files, which
// processes of the same user open through /proc, and which disappear with the server.
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

/// The server's side. Thread-safe.
class SharedMemory {
 public:
  SharedMemory();

  /// Returns a source for the pool of batches: one file per buffer, or plain memory if no file can
  /// be created. May outlive this object.
  MemorySource source() const;
  /// Returns the first bytes of a buffer as a piece; nullopt for other memory.
  std::optional<SharedPiece> find(const void* buffer, std::size_t bytes, std::int64_t piece) const;
  /// Returns a file that a consumer must be able to read; nullopt if no memory can be shared.
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
  /// Opens the view; returns nullptr if this process cannot read the probe.
  static std::unique_ptr<SharedView> open(const SharedFile& probe);

  /// Identifies the server process.
  std::uint64_t token() const { return probe_.token; }
  /// Returns true if the server process still runs.
  bool is_there() const { return open(probe_) != nullptr; }

  /// Returns the bytes of a piece, which is reported as released when they are freed. Throws
  /// DataError if the piece does not exist.
  Frame take(const SharedPiece& piece);
  /// Returns the pieces released since the last call.
  std::vector<std::int64_t> take_released();
  /// Returns the pieces still in use.
  std::vector<std::int64_t> held() const;

 private:
  explicit SharedView(const SharedFile& probe) : probe_(probe) {}

  struct Pieces {
    std::mutex mutex;
    std::set<std::int64_t> held;
    std::vector<std::int64_t> released;
  };
  const SharedFile probe_;
  std::map<std::uint64_t, std::shared_ptr<std::uint8_t[]>> maps_;  // by file number
  std::shared_ptr<Pieces> pieces_ = std::make_shared<Pieces>();
};

/// Returns true if a process exists.
bool is_running(std::int64_t process);

}  // namespace millrace::serving
