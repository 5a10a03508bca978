// Checkpoints written in the background.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <future>
#include <optional>
#include <vector>

#include "millrace/trainer/checkpoint/checkpoint.h"

namespace millrace {

/// Copies the tensors of a checkpoint, then writes it in a thread of its own, one at a time. For
/// the training thread.
class CheckpointWriter {
 public:
  /// `folder`: of the run's checkpoints; made by the first.
  explicit CheckpointWriter(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// Returns once the tensors are copied. REQUIRES: the checkpoint before was collected.
  void write(Checkpoint checkpoint);

  /// The folder of a checkpoint that has been written, once; nothing without one. Waits for one
  /// that is being written if `wait`. Throws Error if it could not be written.
  std::optional<std::filesystem::path> collect(bool wait);

 private:
  void copy_into(std::size_t& used, NamedTensors& tensors);

  std::filesystem::path folder_;
  bool made_folder_ = false;
  std::vector<at::Tensor> copies_;              // reused
  std::future<std::filesystem::path> written_;  // last: waited for before the copies go
};

}  // namespace millrace
