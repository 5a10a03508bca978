#include "millrace/trainer/checkpoint/checkpoint_writer.h"

#include <ATen/ops/empty_like.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/base/events/event_ring.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

/// Returns true if `copy` has the layout of `value`.
bool fits(const at::Tensor& copy, const at::Tensor& value) {
  return copy.sizes() == value.sizes() && copy.strides() == value.strides() &&
         copy.scalar_type() == value.scalar_type();
}

}  // namespace

void CheckpointWriter::copy_into(std::size_t& used, NamedTensors& tensors) {
  for (auto& [name, tensor] : tensors) {
    if (used == copies_.size()) copies_.emplace_back();
    auto& copy = copies_[used++];
    if (!copy.defined() || !fits(copy, tensor))
      copy = at::empty_like(tensor, at::TensorOptions().device(at::kCPU));
    tensor = copy.copy_(tensor);
  }
}

void CheckpointWriter::write(Checkpoint checkpoint) {
  const c10::NoGradGuard no_graph;
  std::size_t used = 0;
  copy_into(used, checkpoint.model);
  copy_into(used, checkpoint.optimizer);
  for (auto& [callback, tensors] : checkpoint.callback_tensors) copy_into(used, tensors);
  copies_.resize(used);
  written_ = std::async(std::launch::async, [folder = folder_, must_exist = made_folder_,
                                             checkpoint = std::move(checkpoint)] {
    const Event event(EventKind::checkpoint, "write", folder.string());
    if (must_exist && !fs::is_directory(folder))
      throw Error(fmt::format(
          "{}: this folder was removed during the training that writes its checkpoints to it",
          folder.string()));
    return write_checkpoint(folder, checkpoint);
  });
}

std::optional<fs::path> CheckpointWriter::collect(bool wait) {
  if (!written_.valid()) return std::nullopt;
  if (!wait && written_.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
    return std::nullopt;
  auto folder = std::exchange(written_, {}).get();
  made_folder_ = true;
  return folder;
}

}  // namespace millrace
