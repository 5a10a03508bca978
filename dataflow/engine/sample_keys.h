// Assigns each sample to a group by its key. Internal.
#pragma once

#include <cstdint>
#include <vector>

#include "millrace/dataflow/engine/plan.h"

namespace millrace {

/// The keys of a plan's samples, computed from the source's descriptions (About) on first use. Not
/// thread-safe.
class SampleKeys {
 public:
  static constexpr std::int64_t kUnwanted = -1;

  /// Borrows `plan`.
  explicit SampleKeys(const Plan& plan);

  std::int64_t groups() const { return group_ ? static_cast<std::int64_t>(group_->groups) : 1; }

  /// Returns 0 .. groups - 1, or kUnwanted if a filter right after the first stage rejects the
  /// sample. A sample that the source cannot describe belongs to group 0; the stage that reads it
  /// reports the error. Throws Error with the sample if the key fails.
  std::int64_t operator()(std::int64_t sample);
  /// Returns true if samples can have different keys.
  bool differ() const { return !filters_.empty() || groups() > 1; }

 private:
  std::int64_t look_up(std::int64_t sample) const;

  const Plan& plan_;
  const Group* group_;
  std::vector<const Map*> filters_;  // filters that take what About describes
  std::vector<std::int32_t> known_;  // by sample
};

}  // namespace millrace
