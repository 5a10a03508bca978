// A step as a list of micro-batches, each computed alone.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "millrace/models/detector/detector.h"
#include "millrace/trainer/cluster/step_agreement.h"

namespace millrace {

struct MicroBatch {
  std::shared_ptr<const Batch> batch;  // all of the step's batch, or a part that shares its pixels
  StepInfo info;                       // its place in the step
};

/// Micro-batches that a rank computes side by side. Each has a number, counted from `first`.
/// Gradients of one number are added as their groups follow each other; then those of all numbers,
/// and of all ranks, as one tree.
struct MicroBatchGroup {
  std::vector<MicroBatch> members;
  std::size_t first = 0;
  bool is_last = false;  // no later group adds to these numbers
};

/// How a rank's batches are cut.
struct MicroBatchCut {
  std::size_t images = 0;  // of a micro-batch (train.micro_batch); 0: those of its group
  std::size_t passes = 1;  // groups of a batch (train.passes)
};

/// The step's micro-batches in the order in which they are computed: batch after batch
/// (optimizer.accumulate), each in up to `passes` groups, as many on every rank. Without
/// `cut.images` a group is one micro-batch, of number 0. A batch that has lost images may have
/// fewer micro-batches than those of other ranks, and a smaller last one. REQUIRES: every batch has
/// an image.
std::vector<MicroBatchGroup> cut_into_micro_batches(std::span<const Batch> batches,
                                                    std::span<const StepPlace> places,
                                                    const StepInfo& info, const MicroBatchCut& cut);

/// How many numbers the groups have.
std::size_t count_numbers(const std::vector<MicroBatchGroup>& groups);

}  // namespace millrace
