// Checkpoints written while the training goes on.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <future>
#include <optional>
#include <vector>

#include "millrace/trainer/checkpoint/checkpoint.h"

namespace millrace {

/// Copies the tensors of a checkpoint, then writes it by a thread of its own: one at a time. For
/// the training thread.
class CheckpointWriter {
 public:
  /// `folder` is the run's folder of checkpoints; it is made by the first one.
  explicit CheckpointWriter(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// Returns once the tensors are copied: their owners may change them. REQUIRES: the one before
  /// was collected.
  void write(Checkpoint checkpoint);

  /// The folder of the checkpoint that was being written, once; nothing where there is none, or,
  /// unless `wait`, where it is not whole yet. Throws Error saying why it could not be written.
  std::optional<std::filesystem::path> collect(bool wait);

 private:
  void copy_into(std::size_t& used, NamedTensors& tensors);

  std::filesystem::path folder_;
  bool made_folder_ = false;
  std::vector<at::Tensor> copies_;              // used again and again
  std::future<std::filesystem::path> written_;  // the last: it is waited for before the copies go
};

}  // namespace millrace
