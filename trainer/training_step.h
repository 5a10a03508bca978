// A training step: losses, gradients and new values.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
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
#include "millrace/trainer/cluster/micro_batch.h"
#include "millrace/trainer/cluster/step_agreement.h"
#include "millrace/trainer/metrics.h"
#include "millrace/trainer/optimizer/optimizer.h"
#include "millrace/trainer/running_statistics.h"
#include "millrace/trainer/step_report.h"
#include "millrace/trainer/train_options.h"

namespace millrace {

class MicroBatches;
class StepPasses;

struct StepEnd {
  StepMetrics scalars;    // losses, their sum, gradient norm and requested metrics
  std::string rejected;   // reason for which nothing was changed; empty = the step was taken
  bool overflow = false;  // true if rejected because of the loss scale, which has been lowered
  /// Seconds waiting for other ranks' gradients after the backward pass; on a GPU, the time of its
  /// stream.
  double sync_s = 0;
  /// Seconds up to the losses and from the losses to the gradients; on a GPU, the time of its
  /// stream. Times of concurrent micro-batches are scaled to their share of the wall time. Then the
  /// same for the process's CPU time.
  double forward_s = 0, backward_s = 0, forward_cpu_s = 0, backward_cpu_s = 0;
};

/// Runs training steps. Borrows the model and the cluster. For one thread.
class TrainingStep {
 public:
  TrainingStep(Detector& model, const TrainOptions& train, const OptimizerOptions& optimizer,
               const Cluster& cluster = Cluster::alone());

  /// Broadcasts the model and optimizer state of rank 0; call before the first step. Throws Error
  /// if names or shapes differ.
  void broadcast_initial_state();

  /// Throws Error naming rank and tensor if the ranks do not have the same model.
  void check_ranks_equal() const;

  /// Takes one step at learning rate `lr` over all `batches` of every rank, cut into micro-batches
  /// (cut_into_micro_batches). Each micro-batch is computed alone. Gradients of a rank are summed
  /// in the order documented at MicroBatchGroup. Over the ranks they are summed as the same tree
  /// with train.micro_batch, else in the fastest order; losses and metrics are summed in the same
  /// way. Losses are divided by totals over the whole step (StepTotals): unless the detector can
  /// count without one, micro-batches after the first group need an additional forward pass without
  /// gradients.
  ///
  /// Every rank gets the same scalars, decisions and values, bit for bit. A step with a loss or
  /// gradient that is not finite changes only `scale`. The fields of `info` that differ between
  /// micro-batches are set here. A device is waited for once: for losses, metrics and gradient
  /// norms together. With one rank, the new values are queued before that (except with LARS and
  /// LARC), and the device itself skips them if the step is bad. `places`: agreed places of these
  /// batches. REQUIRES: every batch has an image, which Partial::wrap ensures.
  StepEnd operator()(std::span<const Batch> batches, std::span<const StepPlace> places,
                     const StepInfo& info, double lr, LossScale& scale);

  /// Agrees with all ranks on the places, then takes the step as above.
  StepEnd operator()(std::span<const Batch> batches, const StepInfo& info, double lr,
                     LossScale& scale);

  Optimizer& optimizer() { return *optimizer_; }
  const Optimizer& optimizer() const { return *optimizer_; }

 private:
  using Groups = std::vector<MicroBatchGroup>;

  /// Takes a step like operator(), but a rejected step leaves changed buffers.
  StepEnd take(const Groups& groups, double lr, LossScale& scale);
  /// Computes losses and gradients of all micro-batches; on a device, queues them.
  void add_gradients(const Groups& groups, double factor, StepNumbers& numbers, StepPasses& passes);
  /// Computes the members of a group concurrently. `compute` gets the index of each member and the
  /// StepInfo to compute it with.
  void run(const MicroBatchGroup& group,
           const std::function<void(MicroBatches& side_by_side, std::size_t member,
                                    const StepInfo& info)>& compute);
  /// Counts of the group's losses, computed without gradients.
  std::vector<LossDivisors> count(const MicroBatchGroup& group, StepPasses& passes);
  /// Number of members of a group that are computed at the same time.
  std::size_t at_once() const;
  /// Waits for the sums of gradients over the ranks and sets them as gradients of all parameters,
  /// so that all are measured. Returns which parameters have a gradient on this rank
  /// (StepReport::gradients).
  std::string sum_gradients(StepPasses& passes);
  /// Returns the report over all micro-batches of all ranks. Ranks take the running statistics of
  /// rank 0, and keep the gradients of those parameters that have one on any rank.
  StepReport combine_reports(std::vector<StepReport> mine, bool moved);

  Detector& model_;
  const Cluster& cluster_;
  std::unique_ptr<Optimizer> optimizer_;
  at::ScalarType type_;  // type of convolutions and matrix products
  at::Device device_;
  double static_scale_;  // loss scale of fp16; 0 = adapted
  MicroBatchCut cut_;
  RunningStatistics statistics_;        // buffers that losses() changes
  SumOrder order_;                      // order of sums over the ranks
  std::unique_ptr<GradientSync> sync_;  // nullptr with one rank and without train.micro_batch
  std::optional<GradientBuckets> buckets_;
  ClusterSum rank_sum_;
  // True if running statistics follow sums over all micro-batches in this step.
  bool moves_sums_ = false;
};

}  // namespace millrace
