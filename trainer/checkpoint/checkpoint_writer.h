// Writes checkpoints in the background.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <future>
#include <optional>
#include <vector>

#include "millrace/trainer/checkpoint/checkpoint.h"

namespace millrace {

/// Copies the tensors of a checkpoint and then writes it on a separate thread, one checkpoint at a
/// time. Only for the training thread.
class CheckpointWriter {
 public:
  /// `folder`: folder of the run's checkpoints, created with the first checkpoint.
  explicit CheckpointWriter(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// Returns when the tensors are copied. REQUIRES: the previous checkpoint was collected.
  void write(Checkpoint checkpoint);

  /// Returns the folder of a written checkpoint, once; otherwise nullopt. `wait`: first
  /// waits for a checkpoint that is being written. Throws Error if it could not be written.
  std::optional<std::filesystem::path> collect(bool wait);

 private:
  void copy_into(std::size_t& used, NamedTensors& tensors);

  std::filesystem::path folder_;
  bool made_folder_ = false;
  std::vector<at::Tensor> copies_;              // copied tensors, whose memory is reused
  std::future<std::filesystem::path> written_;  // last: waited for before the copies go away
};

}  // namespace millrace
