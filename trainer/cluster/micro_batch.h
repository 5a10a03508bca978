// Cuts a step into micro-batches that are computed alone.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "millrace/models/detector/detector.h"
#include "millrace/trainer/cluster/step_agreement.h"

namespace millrace {

struct MicroBatch {
  std::shared_ptr<const Batch> batch;  // a batch of the step, or a part that shares its pixels
  StepInfo info;                       // includes the micro-batch's place in the step
};

/// Micro-batches that a rank computes concurrently. Each has a number, counted from `first`.
/// Gradients of the same number are added in the order of their groups. Then those of all numbers
/// and all ranks are added as one tree.
struct MicroBatchGroup {
  std::vector<MicroBatch> members;
  std::size_t first = 0;
  bool is_last = false;  // true if no later group adds to these numbers
};

/// Sizes into which a rank's batches are cut.
struct MicroBatchCut {
  std::size_t images = 0;  // images per micro-batch (train.micro_batch); 0 = all of its group
  std::size_t passes = 1;  // groups per batch (train.passes)
};

/// Returns the step's micro-batches in the order of computation: batch after batch
/// (optimizer.accumulate), each cut into up to `passes` groups, with the same count on every rank.
/// If `cut.images` is 0, a group is one micro-batch with number 0. A batch that has lost images may
/// have fewer micro-batches than that of another rank, and a smaller last one. REQUIRES: every
/// batch has an image.
std::vector<MicroBatchGroup> cut_into_micro_batches(std::span<const Batch> batches,
                                                    std::span<const StepPlace> places,
                                                    const StepInfo& info, const MicroBatchCut& cut);

/// Returns the count of numbers that the groups use.
std::size_t count_numbers(const std::vector<MicroBatchGroup>& groups);

}  // namespace millrace
