// Which group each sample belongs to. Internal.
#pragma once

#include <cstdint>
#include <vector>

#include "millrace/dataflow/engine/plan.h"

namespace millrace {

/// The keys of a plan's samples, by what the source knows of them (About); each is looked up when
/// first asked for. Not thread-safe.
class SampleKeys {
 public:
  static constexpr std::int64_t kUnwanted = -1;

  /// `plan` is borrowed.
  explicit SampleKeys(const Plan& plan);

  std::int64_t groups() const { return group_ ? static_cast<std::int64_t>(group_->groups) : 1; }

  /// 0 .. groups - 1, or kUnwanted: a filter right after the first stage rejects the sample. One
  /// that the source cannot describe belongs to group 0, until the stage that reads it reports what
  /// is wrong. Throws Error naming the sample if the key fails.
  std::int64_t operator()(std::int64_t sample);
  /// Whether keys differ at all.
  bool differ() const { return !filters_.empty() || groups() > 1; }

 private:
  std::int64_t look_up(std::int64_t sample) const;

  const Plan& plan_;
  const Group* group_;
  std::vector<const Map*> filters_;  // those that see About
  std::vector<std::int32_t> known_;  // by sample
};

}  // namespace millrace
