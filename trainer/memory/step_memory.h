// Detects steps that do not fit into memory, and predicts whether the largest batch of a training
// will.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/largest_batch.h"
#include "millrace/trainer/cluster/step_agreement.h"

namespace millrace {

/// Returns true if an allocation of this program or of libtorch failed.
bool is_out_of_memory(const std::exception& problem);

/// Returns the error message for a step over these batches.
std::string out_of_memory_text(const std::vector<Batch>& batches);

/// Measures the memory of training steps and warns once, before the largest batch comes, if that
/// batch will not fit: the host's memory for a CPU, else the device's. Memory grows with the padded
/// pixels of a batch. Only a step that reaches a new peak of the process is a measurement.
class StepMemory {
 public:
  /// `largest`: planned batch; nullopt = nothing is measured. `ranks`: number of ranks that share
  /// the host's memory.
  StepMemory(const std::optional<LargestBatch>& largest, at::Device device, std::int64_t ranks);

  void before_step();

  /// `step`: its number, from 1. `places`: of the batches, with their padded sizes.
  void after_step(std::int64_t step, std::span<const Batch> batches,
                  std::span<const StepPlace> places);

 private:
  std::optional<LargestBatch> largest_;
  at::Device device_;
  double ranks_;
  std::optional<double> used_before_;  // bytes used before the first step
  double peak_before_ = 0;             // peak bytes before this step
  LargestBatch seen_;                  // largest batch of the steps so far
};

}  // namespace millrace
