// Where the batches of a rank stand among all images of a step.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/trainer/cluster/cluster.h"

namespace millrace {

/// A batch's place in its step.
struct StepPlace {
  std::int64_t first_image = 0;        // of the batch, among all of the step
  std::int32_t width = 0, height = 0;  // of the largest padding that a rank has in this micro-batch
};

/// The places of this rank's batches. A step's images are in one order, whatever the number of ranks: those of the first
/// micro-batch of every rank, then those of the second, and so on. One exchange. Throws Error where ranks have other
/// numbers of batches.
std::vector<StepPlace> agree_on_places(const Cluster& cluster, std::span<const Batch> batches);

}  // namespace millrace
