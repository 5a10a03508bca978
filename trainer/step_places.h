// Where the batches of a rank stand among all images of a step.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dataflow/sample.h"
#include "trainer/cluster.h"

namespace millrace {

/// A step's images in one order, whatever the number of ranks: those of the first micro-batch of every rank, then those
/// of the second, and so on.
struct StepPlaces {
  struct Place {
    std::int64_t first_image = 0;        // of the batch, among all of the step
    std::int32_t width = 0, height = 0;  // of the largest padding that a rank has there
  };
  std::vector<Place> batches;  // of this rank
  std::int64_t images = 0;     // of the step, over all ranks
};

/// One exchange. Throws Error where ranks have other numbers of batches.
StepPlaces agree_on_places(const Cluster& cluster, std::span<const Batch> batches);

}  // namespace millrace
