// A training step: losses, gradients, new values.
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
class StepNumbers;
class StepPasses;

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

  /// One step at rate `lr` over all `batches` of every rank, cut into micro-batches
  /// (cut_into_micro_batches). Each is computed alone; gradients are summed in the order that
  /// MicroBatchGroup says, and with train.micro_batch over the ranks as the same tree, else in the
  /// fastest order. Losses and figures are summed likewise, and losses are divided by what all have
  /// together (StepTotals): micro-batches after the first group take a pass without gradients
  /// before, unless the detector knows its counts without.
  ///
  /// Every rank gets the same scalars, decisions and values, bit for bit. A step whose losses or
  /// gradients are not finite changes only `scale`. Fields of `info` that differ between
  /// micro-batches are set here. A device is waited for once: for losses, figures and norms of
  /// gradients together. Of one rank, the new values are queued before that (except with LARS and
  /// LARC), and the device leaves them out itself if the step is bad. `places`: of these batches,
  /// as agreed. REQUIRES: every batch has an image, as Partial::wrap sees to.
  StepEnd operator()(std::span<const Batch> batches, std::span<const StepPlace> places,
                     const StepInfo& info, double lr, LossScale& scale);

  /// The same, after agreeing on the places with all ranks.
  StepEnd operator()(std::span<const Batch> batches, const StepInfo& info, double lr,
                     LossScale& scale);

  Optimizer& optimizer() { return *optimizer_; }
  const Optimizer& optimizer() const { return *optimizer_; }

 private:
  using Groups = std::vector<MicroBatchGroup>;

  /// As operator(), except that a rejected step has changed buffers.
  StepEnd take(const Groups& groups, double lr, LossScale& scale);
  /// Losses and gradients of all micro-batches; on a device, queued.
  void add_gradients(const Groups& groups, double factor, StepNumbers& numbers, StepPasses& passes);
  /// Computes the members of a group side by side: `compute` gets the place of each among them, and
  /// what it is to compute with.
  void run(const MicroBatchGroup& group,
           const std::function<void(MicroBatches& side_by_side, std::size_t member,
                                    const StepInfo& info)>& compute);
  /// Counts of the group's losses, without gradients.
  std::vector<Counts> count(const MicroBatchGroup& group, StepPasses& passes);
  /// How many members of a group are computed at the same time.
  std::size_t at_once() const;
  /// Waits for the sums of gradients over the ranks and makes them the parameters' gradients, all
  /// of them to be measured. Which parameters have one on this rank.
  std::string sum_gradients(StepPasses& passes);
  /// Of all micro-batches of all ranks, which get the chief's statistics and agree on the
  /// parameters with a gradient.
  StepReport shared(std::vector<StepReport> mine, bool moved);

  Detector& model_;
  const Cluster& cluster_;
  std::unique_ptr<Optimizer> optimizer_;
  at::ScalarType type_;  // of convolutions and matrix products
  at::Device device_;
  double static_scale_;  // of the losses in fp16; 0: looked for
  MicroBatchCut cut_;
  RunningStatistics statistics_;        // which losses() changes
  SumOrder order_;                      // over the ranks
  std::unique_ptr<GradientSync> sync_;  // for several ranks or micro-batches, as the next
  std::optional<GradientBuckets> buckets_;
  ClusterSum rank_sum_;
  bool moves_sums_ = false;  // the step's running statistics follow sums over all micro-batches
};

}  // namespace millrace
