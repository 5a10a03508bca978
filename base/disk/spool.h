// Bytes that memory should not hold: written to a file without a name, then mapped.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "millrace/base/files.h"

namespace millrace {

/// A file without a name, which goes with its last owner.
class Spool {
 public:
  /// Throws Error naming the folder and the system's reason.
  explicit Spool(std::filesystem::path folder);

  /// Throws Error, such as for a full disk.
  void add(std::string_view bytes);
  /// What was added so far, for as long as it is held. The kernel reads its pages when they are
  /// touched, and takes them back where memory is short. Throws Error.
  SharedBytes mapped() const;

 private:
  std::filesystem::path folder_;
  UniqueFd fd_;
  std::size_t size_ = 0;
};

/// Takes the whole pages among these bytes of a mapped file out of the process: the kernel reads
/// them again when they are touched. For no other memory.
void release_pages(std::string_view mapped);

/// Where arrays go that would fill memory.
struct Spill {
  std::filesystem::path folder;             // for spools
  std::size_t most = std::size_t{1} << 20;  // bytes of an array that stay in memory
};

/// An array that only grows: in memory, or in a spool once it is too large for that.
template <class T>
requires std::is_trivially_copyable_v<T>
class SpillingArray {
 public:
  /// Without `spill` in memory, whatever its size.
  explicit SpillingArray(std::optional<Spill> spill = {}) : spill_(std::move(spill)) {}
  explicit SpillingArray(std::vector<T> values) : values_(std::move(values)) {}

  std::size_t size() const { return spilled_ + values_.size(); }

  /// Reserves room for `count` values, or for those that may stay in memory.
  void reserve(std::size_t count) { values_.reserve(std::min(count, most())); }

  void append(std::span<const T> more) {
    values_.insert(values_.end(), more.begin(), more.end());
    if (values_.size() > most()) flush();
  }

  /// All of it, for as long as this lives. Nothing may be appended after that.
  std::span<const T> values() {
    if (!spool_) return values_;
    flush();
    if (!mapped_.data) mapped_ = spool_->mapped();
    return {reinterpret_cast<const T*>(mapped_.data.get()), spilled_};
  }

 private:
  /// Values that may wait in memory.
  std::size_t most() const { return spill_ ? spill_->most / sizeof(T) : values_.max_size(); }
  void flush() {
    if (!spool_) spool_.emplace(spill_->folder);
    spool_->add({reinterpret_cast<const char*>(values_.data()), values_.size() * sizeof(T)});
    spilled_ += values_.size();
    values_.clear();
  }

  std::optional<Spill> spill_;
  std::vector<T> values_;  // those that are not in the spool
  std::optional<Spool> spool_;
  std::size_t spilled_ = 0;
  SharedBytes mapped_;
};

}  // namespace millrace
