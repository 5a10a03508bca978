// Large data kept out of memory: written to an anonymous temporary file, then mapped.
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

/// An anonymous temporary file. The system deletes it when the last owner releases it.
class Spool {
 public:
  /// Throws Error naming the folder and the system's reason.
  explicit Spool(std::filesystem::path folder);

  /// Appends bytes. Throws Error, for example if the disk is full.
  void add(std::string_view bytes);
  /// Maps the bytes added so far. The kernel reads the pages on access and can evict them when
  /// memory is short. Throws Error.
  SharedBytes mapped() const;

 private:
  std::filesystem::path folder_;
  UniqueFd fd_;
  std::size_t size_ = 0;
};

/// Drops the whole pages of this part of a mapped file from memory; the kernel reads them again on
/// access. REQUIRES: `mapped` belongs to a mapped file, since other memory would lose its contents.
void release_pages(std::string_view mapped);

/// Settings for arrays that may be too large for memory.
struct Spill {
  std::filesystem::path folder;                            // folder of the spools
  std::size_t max_bytes_in_memory = std::size_t{1} << 20;  // of an array
};

/// An append-only array. It is kept in memory up to the limit of `Spill`, and beyond that in a
/// spool.
template <class T>
requires std::is_trivially_copyable_v<T>
class SpillingArray {
 public:
  /// Without `spill` the array stays in memory at any size.
  explicit SpillingArray(std::optional<Spill> spill = {}) : spill_(std::move(spill)) {}
  explicit SpillingArray(std::vector<T> values) : values_(std::move(values)) {}

  std::size_t size() const { return spilled_ + values_.size(); }

  /// Reserves memory for `count` values, at most for those that may stay in memory.
  void reserve(std::size_t count) { values_.reserve(std::min(count, max_values())); }

  void append(std::span<const T> more) {
    values_.insert(values_.end(), more.begin(), more.end());
    if (values_.size() > max_values()) flush();
  }

  /// Returns all values; the span is valid while this object lives. Nothing may be appended
  /// afterwards.
  std::span<const T> values() {
    if (!spool_) return values_;
    flush();
    if (!mapped_.data) mapped_ = spool_->mapped();
    return {reinterpret_cast<const T*>(mapped_.data.get()), spilled_};
  }

 private:
  /// Number of values that may stay in memory.
  std::size_t max_values() const {
    return spill_ ? spill_->max_bytes_in_memory / sizeof(T) : values_.max_size();
  }
  void flush() {
    if (!spool_) spool_.emplace(spill_->folder);
    spool_->add({reinterpret_cast<const char*>(values_.data()), values_.size() * sizeof(T)});
    spilled_ += values_.size();
    values_.clear();
  }

  std::optional<Spill> spill_;
  std::vector<T> values_;  // values that are not in the spool yet
  std::optional<Spool> spool_;
  std::size_t spilled_ = 0;
  SharedBytes mapped_;
};

}  // namespace millrace
