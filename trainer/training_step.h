// A training step: losses, gradients, new values.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "millrace/models/detector/detector.h"
#include "millrace/trainer/checkpoint/position.h"
#include "millrace/trainer/cluster/cluster.h"
#include "millrace/trainer/cluster/gradient_buckets.h"
#include "millrace/trainer/cluster/gradient_sync.h"
#include "millrace/trainer/cluster/step_agreement.h"
#include "millrace/trainer/metrics.h"
#include "millrace/trainer/optimizer/optimizer.h"
#include "millrace/trainer/running_statistics.h"
#include "millrace/trainer/step_report.h"
#include "millrace/trainer/train_options.h"

namespace millrace {

class StepPasses;
class StepSums;

struct StepEnd {
  StepFigures scalars;    // losses, their sum, norm of the gradients, figures asked for
  std::string rejected;   // why nothing was changed; empty: the step was taken
  bool overflow = false;  // rejected for the loss scale, which has been lowered
  /// Waited for other ranks' gradients after the backward pass; on a GPU, by its stream.
  double sync_s = 0;
  /// Up to the losses, and from there to the gradients; of micro-batches side by side, their shares
  /// of the time. On a GPU, by its stream. Then the same of the process's CPU time.
  double forward_s = 0, backward_s = 0, forward_cpu_s = 0, backward_cpu_s = 0;
};

/// Borrows the model and the cluster. For one thread.
class TrainingStep {
 public:
  TrainingStep(Detector& model, const TrainOptions& train, const OptimizerOptions& optimizer,
               const Cluster& cluster = Cluster::alone());

  /// Broadcasts the chief's model and optimizer state, before the first step. Throws Error if names
  /// or shapes differ.
  void start_alike();

  /// Throws Error naming rank and tensor if the ranks no longer have the same model.
  void check_alike() const;

  /// One step at rate `lr` over all `batches` of every rank; of several batches all but the first
  /// take a pass without gradients before, for the totals that losses are divided by (LossTotals),
  /// unless the detector knows these without (KnowsTotals).
  /// With train.micro_batch each is computed in micro-batches of that size (MicroBatches), the last
  /// of a batch smaller if it has lost images. Their losses, figures, gradients and statistics are
  /// added as one balanced tree over all ranks, whose numbers of micro-batches may differ then.
  /// With train.passes each batch is several parts that follow each other, as batches do. Every
  /// rank gets the same scalars, decisions and values, bit for bit. A step whose losses or
  /// gradients are not finite changes only `scale`. Fields of `info` that differ between batches
  /// are set here. A device is waited for once: for losses, figures and norms of gradients
  /// together. Of one rank, the new values are queued before that (except with LARS and LARC), and
  /// the device leaves them out itself if the step is bad. `places`: of these batches, as agreed.
  /// REQUIRES: every batch has an image, as Partial::wrap sees to.
  StepEnd operator()(std::span<const Batch> batches, std::span<const StepPlace> places,
                     const StepInfo& info, double lr, LossScale& scale);

  /// The same, after agreeing on the places with all ranks.
  StepEnd operator()(std::span<const Batch> batches, const StepInfo& info, double lr,
                     LossScale& scale);

  Optimizer& optimizer() { return *optimizer_; }
  const Optimizer& optimizer() const { return *optimizer_; }

 private:
  struct MicroBatch;
  struct Part;

  std::vector<Part> parts_of(std::span<const Batch> batches, std::span<const StepPlace> places,
                             const StepInfo& info) const;
  void add_parts(const Batch& batch, const StepPlace& place, StepInfo info,
                 std::vector<Part>& parts) const;
  std::size_t at_once() const;
  /// Losses and gradients; on a device, queued.
  void descend(const std::vector<Part>& parts, double factor, StepSums& sums, StepPasses& passes);
  /// As operator(), except that a rejected step has changed buffers.
  void take(const std::vector<Part>& parts, double lr, LossScale& scale, StepEnd& end);
  /// Of all micro-batches of all ranks, which get the chief's statistics and agree on the
  /// parameters with a gradient.
  StepReport shared(std::vector<StepReport> mine, bool moved);

  Detector& model_;
  const Cluster& cluster_;
  std::unique_ptr<Optimizer> optimizer_;
  at::ScalarType type_;  // of convolutions and matrix products
  at::Device device_;
  double static_scale_;                 // of the losses in fp16; 0: looked for
  std::size_t micro_batch_;             // images; 0: the batch
  std::size_t passes_;                  // of a batch
  RunningStatistics statistics_;        // which losses() changes
  SumOrder order_;                      // over the ranks
  std::unique_ptr<GradientSync> sync_;  // for several ranks or micro-batches, as the next
  std::optional<GradientBuckets> buckets_;
  mutable ClusterSum rank_sum_;
  bool takes_sums_ = true;  // the step's running statistics follow sums over all micro-batches
};

}  // namespace millrace
