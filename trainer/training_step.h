// One step of a training, apart from what goes on around it: losses, gradients, new values.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trainer/callback.h"
#include "trainer/detector.h"
#include "trainer/loss_scale.h"
#include "trainer/optimizer.h"
#include "trainer/train_options.h"

namespace millrace {

/// What came of a step.
struct StepEnd {
  Scalars scalars;       // the losses, their sum, the gradients' norm, the figures asked for
  std::string rejected;  // why nothing was changed; empty: the step was taken
  bool overflow =
      false;  // it was rejected for the loss scale, which has been lowered: no fault of the model's
};

/// Borrows the model. For one thread.
class TrainingStep {
 public:
  TrainingStep(Detector& model, const TrainOptions& train, const OptimizerOptions& optimizer);

  /// Descends the losses of the images of all `batches` together at rate `lr`; several are gone through twice, first
  /// without gradients for the totals that their losses are divided by (LossTotals). A step whose losses or gradients
  /// are not finite changes nothing but `scale`. Of `info`, what tells one batch from the next is filled in here. The
  /// device is waited for here alone: losses, figures and gradients' norms are read once all is queued.
  StepEnd operator()(std::span<const Batch> batches, StepInfo info, double lr, LossScale& scale);

  Optimizer& optimizer() { return *optimizer_; }
  const Optimizer& optimizer() const { return *optimizer_; }

 private:
  Losses losses(const Batch& batch, const StepInfo& info) const;
  void collect_totals(std::span<const Batch> batches, StepInfo info,
                      MicroBatchTotals& totals) const;
  /// The same as operator(), but that what a rejected step has done to buffers stays done.
  StepEnd take(std::span<const Batch> batches, StepInfo info, double lr, LossScale& scale);

  Detector& model_;
  std::unique_ptr<Optimizer> optimizer_;
  at::ScalarType type_;  // of convolutions and matrix products
  at::DeviceType device_;
  double static_scale_;                               // of the losses in fp16; 0: looked for
  std::vector<at::Tensor> buffers_, buffers_before_;  // running statistics, which losses() moves
};

}  // namespace millrace
