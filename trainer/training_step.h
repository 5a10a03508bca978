// One step of a training, apart from what goes on around it: losses, gradients, new values.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "trainer/callback.h"
#include "trainer/detector.h"
#include "trainer/loss_scale.h"
#include "trainer/optimizer.h"
#include "trainer/train_options.h"

namespace millrace {

/// What came of a step.
struct StepEnd {
  Scalars scalars;       // the losses, their sum, the gradients' norm
  std::string rejected;  // why nothing was changed; empty: the step was taken
  bool overflow =
      false;  // it was rejected for the loss scale, which has been lowered: no fault of the model's
};

/// Borrows the model. For one thread.
class TrainingStep {
 public:
  TrainingStep(Detector& model, const TrainOptions& train, const OptimizerOptions& optimizer);

  /// Descends the losses of a batch at rate `lr`. A step whose losses or gradients are not finite changes nothing but
  /// `scale`. The device is waited for here alone: losses and gradients' norms are read once all is queued.
  StepEnd operator()(const Batch& batch, const StepInfo& step, double lr, LossScale& scale);

  Sgd& optimizer() { return optimizer_; }
  const Sgd& optimizer() const { return optimizer_; }

 private:
  Losses losses(const Batch& batch, const StepInfo& step);

  Detector& model_;
  Sgd optimizer_;
  at::ScalarType type_;  // of convolutions and matrix products
  at::DeviceType device_;
};

}  // namespace millrace
