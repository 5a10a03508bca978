// One step of a training, apart from what goes on around it: losses, gradients, new values.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "millrace/trainer/cluster/cluster.h"
#include "millrace/trainer/cluster/gradient_buckets.h"
#include "millrace/trainer/cluster/gradient_sync.h"
#include "millrace/trainer/cluster/step_agreement.h"
#include "millrace/trainer/detector/detector.h"
#include "millrace/trainer/detector/position.h"
#include "millrace/trainer/metrics.h"
#include "millrace/trainer/optimizer/optimizer.h"
#include "millrace/trainer/step_report.h"
#include "millrace/trainer/train_options.h"

namespace millrace {

/// What came of a step.
struct StepEnd {
  StepFigures scalars;   // the losses, their sum, the gradients' norm, the figures asked for
  std::string rejected;  // why nothing was changed; empty: the step was taken
  // It was rejected for the loss scale, which has been lowered: no fault of the model's
  bool overflow = false;
  double sync_s = 0;  // that were waited for gradients of other ranks behind the backward pass
};

/// Borrows the model and the cluster. For one thread.
class TrainingStep {
 public:
  TrainingStep(Detector& model, const TrainOptions& train, const OptimizerOptions& optimizer,
               const Cluster& cluster = Cluster::alone());

  /// All ranks hold from here on what the chief holds: the model, and what the optimizer keeps.
  /// Throws Error where theirs are of other names or shapes. Before the first step, and after
  /// values were loaded.
  void start_alike();

  /// Throws Error naming rank and tensor where the ranks no longer hold the same model.
  void check_alike() const;

  /// Descends the losses of the images of all `batches`, of every rank, together at rate `lr`;
  /// several are gone through twice, first without gradients for the totals that their losses are
  /// divided by (LossTotals). Every rank comes to the same scalars, decisions and values, in the
  /// same bits. A step whose losses or gradients are not finite changes nothing but `scale`. Of
  /// `info`, what tells one batch from the next is filled in here. The device is waited for here
  /// alone: losses, figures and gradients' norms are read once all is queued.
  /// `places`: what all ranks have agreed upon for these batches.
  StepEnd operator()(std::span<const Batch> batches, std::span<const StepPlace> places,
                     const StepInfo& info, double lr, LossScale& scale);

  /// The same for a caller that has agreed upon nothing: that is done here, in an exchange.
  StepEnd operator()(std::span<const Batch> batches, const StepInfo& info, double lr,
                     LossScale& scale);

  Optimizer& optimizer() { return *optimizer_; }
  const Optimizer& optimizer() const { return *optimizer_; }

 private:
  struct Part;

  std::vector<Part> parts_of(std::span<const Batch> batches, std::span<const StepPlace> places,
                             const StepInfo& info) const;
  Losses losses(const Batch& batch, const StepInfo& info) const;
  /// The first pass of two.
  void collect_totals(const std::vector<Part>& parts) const;
  /// Losses, gradients and figures of the whole step.
  StepReport descend(std::vector<Part> parts, double factor, StepEnd& end);
  /// The same as operator(), but that what a rejected step has done to buffers stays done.
  void take(std::vector<Part> parts, double lr, LossScale& scale, StepEnd& end);

  Detector& model_;
  const Cluster& cluster_;
  std::unique_ptr<Optimizer> optimizer_;
  at::ScalarType type_;  // of convolutions and matrix products
  at::DeviceType device_;
  double static_scale_;                               // of the losses in fp16; 0: looked for
  std::vector<at::Tensor> buffers_, buffers_before_;  // running statistics, which losses() moves
  std::unique_ptr<GradientSync> sync_;                // these are for several ranks
  std::optional<GradientBuckets> buckets_;
  mutable RankSum rank_sum_;
};

}  // namespace millrace
