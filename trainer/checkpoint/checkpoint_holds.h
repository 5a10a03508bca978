// Handles that protect checkpoints from removal.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <vector>

namespace millrace {

/// Protects the checkpoint of a step while the handle or a copy of it lives.
using CheckpointHold = std::shared_ptr<const std::int64_t>;

/// Keeps track of the holds. Only for the training thread.
class CheckpointHolds {
 public:
  /// The checkpoint of `step` need not exist yet.
  [[nodiscard]] CheckpointHold hold(std::int64_t step) {
    std::erase_if(all_, [](const auto& one) { return one.expired(); });
    auto hold = std::make_shared<const std::int64_t>(step);
    all_.push_back(hold);
    return hold;
  }

  /// Returns true if the step is held now or was held when the newest complete checkpoint was
  /// taken, since a training resumed from that checkpoint needs it again.
  bool is_held(std::int64_t step) const {
    return at_newest_.contains(step) || held().contains(step);
  }

  /// Call on_taken() when a checkpoint is taken, and on_written() when it has been written.
  void on_taken() { at_next_ = held(); }
  void on_written() { at_newest_ = at_next_; }

 private:
  std::set<std::int64_t> held() const {
    std::set<std::int64_t> steps;
    for (const auto& one : all_)
      if (const auto hold = one.lock()) steps.insert(*hold);
    return steps;
  }

  std::vector<std::weak_ptr<const std::int64_t>> all_;
  std::set<std::int64_t> at_newest_, at_next_;  // steps held when these checkpoints were taken
};

}  // namespace millrace
