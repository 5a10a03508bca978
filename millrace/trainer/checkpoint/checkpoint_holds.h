// Checkpoints that must stay, whatever else is removed.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <vector>

namespace millrace {

/// Keeps the checkpoint of a step for as long as it, or a copy of it, lives.
using CheckpointHold = std::shared_ptr<const std::int64_t>;

/// Those of one training. For the training thread.
class CheckpointHolds {
 public:
  /// The step may still be without a checkpoint.
  [[nodiscard]] CheckpointHold hold(std::int64_t step);

  /// Whether somebody holds the checkpoint now, or did when the newest whole one was taken: a
  /// training that is resumed from that needs it again.
  bool is_held(std::int64_t step) const;

  /// To be called when a checkpoint is taken, and when it has become whole.
  void taken() { at_next_ = held(); }
  void whole() { at_newest_ = at_next_; }

 private:
  std::set<std::int64_t> held() const;

  std::vector<std::weak_ptr<const std::int64_t>> all_;
  std::set<std::int64_t> at_newest_, at_next_;  // held when these checkpoints were taken
};

}  // namespace millrace
