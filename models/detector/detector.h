// The contract of a model. A plug-in derives from Detector and registers a factory; trainer/
// depends on no particular detector.
#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "millrace/base/random.h"
#include "millrace/base/registry.h"
#include "millrace/dataflow/detection/sample.h"
#include "millrace/models/detector/detected_object.h"
#include "millrace/models/weights/parameters.h"

namespace millrace {

namespace onnx {  // models/onnx
struct Images;
struct Objects;
}  // namespace onnx

struct MetricSums;  // metrics.h
class RankSum;
struct ModelContext;

/// A number that the sum of a loss is divided by, e.g. the objects of a batch. Not negative.
struct LossDivisor {
  std::string name;
  double number = 0;
};
using LossDivisors = std::vector<LossDivisor>;

/// A loss of a batch as a sum with the count that it is averaged over. The batch may be a part of
/// the step: a micro-batch or a rank's share. The trainer adds up the counts of all parts and
/// divides each sum by the total (by 1 if that is 0), so that the losses and gradients of the parts
/// add up to those of the whole batch.
struct LossSum {
  std::string name;
  at::Tensor sum;       // one element
  LossDivisor divisor;  // losses may share a count: the same name with the same number
};

/// The losses of a batch in a fixed order, with the same names for every batch: a batch without
/// objects has sums and counts of 0. Training minimizes the sum of all losses.
using LossSums = std::vector<LossSum>;

/// Losses by name, divided by their counts.
using Losses = std::vector<std::pair<std::string, at::Tensor>>;

/// Metrics of a training step, such as accuracies: quotients by name. Numerators and denominators
/// are summed over the step's micro-batches and ranks before the division. Tensors stay on their
/// device until the losses are read.
class Metrics {
 public:
  /// Adds `part` to the numerator and `whole` to the denominator of the metric `name`: one element
  /// each, of any type, without gradient.
  void add(std::string name, const at::Tensor& part, const at::Tensor& whole);
  void add(std::string name, double part, double whole);

  /// Numerators and denominators in turn, fp32, on their device.
  const std::vector<at::Tensor>& numbers() const { return numbers_; }

  /// Returns the sums in the order of first addition. `values` are the values of `numbers`.
  std::vector<MetricSums> sums(const double* values) const;

 private:
  std::vector<std::string> names_;
  std::vector<at::Tensor> numbers_;
};

/// Inputs of a training step besides the batch. The batch may be one of several parts of the step:
/// micro-batches or ranks.
struct StepInfo {
  std::uint64_t seed = 0;
  std::int64_t step = 0;
  double progress = 0;            // epochs trained before this step
  bool without_training = false;  // running statistics are used, not updated
  /// Width and height to pad the batch to: the largest of all ranks, so that they compute what one
  /// process would. 0 = the batch's own size.
  cv::Size padded = {};
  /// Maximum number of objects of an image, and number of objects with a shape, over all images of
  /// the step and without crowd regions. 0 = those of the batch. For tensors whose size, and
  /// computations whose presence, must be equal in all parts.
  std::int64_t max_objects = 0, objects_with_shape = 0;
  std::int64_t first_image = 0;  // index of the batch's first image in the step
  RankSum* ranks = nullptr;      // sums over the step's parts; nullptr = only one part
  Metrics* metrics = nullptr;    // nullptr = not wanted

  /// Returns the random numbers for image `image` of the batch: equal after a resume and in any
  /// part of the step. `stream` is any constant.
  Rng rng(std::uint64_t stream, std::size_t image) const {
    return {seed, static_cast<std::uint64_t>(step), stream,
            static_cast<std::uint64_t>(first_image) + image};
  }
};

/// Facts about a training before it starts.
struct TrainingFacts {
  std::int64_t ranks = 1;         // processes that share each step
  bool in_micro_batches = false;  // layers must not normalise by themselves (train.micro_batch)
  bool starts_random = false;     // no weights are loaded, and no checkpoint is resumed
  /// Counts the objects in one pass over all samples; empty = not available.
  std::function<ObjectCounts()> count_objects;
};

/// Intermediate results of `detect` for each image of the batch, in pixels of the original images.
struct DetectionNotes {
  /// Proposals of a two-stage detector, best first: label 0 (no class), scored by rank.
  std::vector<std::vector<DetectedObject>> proposals;
  /// Detections before NMS that reach the score threshold, in any order, without masks.
  std::vector<std::vector<DetectedObject>> raw;
};

/// A model. Callers use the public functions, which check arguments and results and add the
/// detector's title to errors; a detector overrides the private functions. An exception or invalid
/// result of these becomes an Error.
class Detector {
 public:
  virtual ~Detector() = default;

  /// Returns the losses of a batch as sums, with gradients. Throws Error for losses that cannot be
  /// trained with: an empty list, undefined tensors, more than one element, contradictory counts,
  /// or (with gradients enabled) no loss that depends on a trained parameter.
  LossSums loss_sums(const Batch& batch, const StepInfo& step);

  /// Returns each count of these losses once: from `compute_counts` if the detector implements it,
  /// else by computing the losses.
  LossDivisors counts(const Batch& batch, const StepInfo& step);

  /// Returns the losses of a batch that is the whole step.
  Losses losses(const Batch& batch, const StepInfo& step);

  /// Returns the objects of each image, best score first, computed in the type of `detect_in`. The
  /// detector receives images of one padded size at a time, each padded as if it were alone
  /// (Batch::divisor), so that results do not depend on the other images. Throws Error for a wrong
  /// number of images, invalid labels, boxes or scores that are not finite, and masks whose size is
  /// not the image's. `notes`, if not nullptr, is filled; requires gives_notes().
  std::vector<std::vector<DetectedObject>> detect(const Batch& batch,
                                                  DetectionNotes* notes = nullptr);

  /// Adds the nodes of `detect` to the graph of `images`, for `trainer export`: the same objects in
  /// the same order. `pasted`: masks cover the whole image. Throws Error for a detector or an
  /// option that cannot be exported.
  onnx::Objects add_to(const onnx::Images& images, bool pasted) const;

  /// Must be called after parameters were overwritten.
  void parameters_changed();

  /// Returns warnings, whole sentences, before a training. Throws ConfigError if training cannot
  /// work.
  std::vector<std::string> check_training(const TrainingFacts& facts) const;

  /// Sets the type of convolutions and matrix products in `detect`, as autocast does; the default
  /// is fp32.
  void detect_in(at::ScalarType type) { detect_type_ = type; }

  /// "detector 'NAME'", for messages.
  const std::string& title() const { return title_; }

  /// The device of the parameters; the CPU without parameters.
  at::Device device() const;

  /// Every tensor that is trained or saved, on the context's device. Callers may overwrite values
  /// in place between calls.
  virtual const Parameters& parameters() const = 0;

  /// Returns false if `detect` never gives masks; configuring mask metrics is then an error before
  /// the first step.
  virtual bool gives_masks() const { return true; }

  /// Returns true if `detect` fills notes.
  virtual bool gives_notes() const { return false; }

 private:
  friend std::unique_ptr<Detector> make_detector(const std::string& name, const Config& table,
                                                 const ModelContext& context);

  /// Implements `loss_sums`. Under at::NoGradGuard the call must not change the model. With
  /// train.micro_batch several threads call it at once, each for a part of the step.
  virtual LossSums compute_losses(const Batch& batch, const StepInfo& step) = 0;

  /// Returns the counts of `compute_losses` (same names, order and numbers) without running the
  /// network; empty = not implemented. Saves the counting forward pass in steps of several batches
  /// (optimizer.accumulate). Called as `compute_losses` is.
  virtual LossDivisors compute_counts(const Batch& batch, const StepInfo& step) const {
    static_cast<void>(batch), static_cast<void>(step);
    return {};
  }

  /// Implements `detect`. Must be deterministic and keep no gradients. `notes` is to be filled;
  /// nullptr = not wanted, as always if gives_notes() is false.
  virtual std::vector<std::vector<DetectedObject>> find_objects(const Batch& batch,
                                                                DetectionNotes* notes) = 0;

  /// Implements `add_to`.
  virtual onnx::Objects add_nodes(const onnx::Images& images, bool pasted) const;

  /// Recomputes values that are derived from the parameters.
  virtual void on_parameters_changed() {}

  /// Implements `check_training`. Called before the first step on every rank, and by `trainer
  /// doctor`.
  virtual std::vector<std::string> check_facts(const TrainingFacts&) const { return {}; }

  std::string title_ = "the detector";
  std::size_t class_count_ = 0;  // 0 = unknown
  at::ScalarType detect_type_ = at::kFloat;
};

/// The inputs of a detector's construction besides its own options.
struct ModelContext {
  std::vector<std::string> classes;  // names in label order
  std::uint64_t seed = 1;            // seed of the initial weights
  at::Device device = at::kCPU;      // device of the parameters
  // true = weights are loaded before any computation, so parameters may stay uninitialized
  bool awaits_weights = false;
};

/// Creates a detector; `table` holds its own options.
using DetectorFactory =
    std::function<std::unique_ptr<Detector>(const Config& table, const ModelContext& context)>;

Registry<DetectorFactory>& detectors();

/// Registers the class `D` as [model] type = NAME, made from its options `O` and a ModelContext
/// (see make_component). At namespace scope:
///
///   MILLRACE_REGISTER(register_detector<RetinaNet>("retinanet", "one stage, focal loss"));
template <std::derived_from<Detector> D, class O = OptionsOf<D>>
bool register_detector(const std::string& name, std::string doc) {
  return detectors().add<O>(name, std::move(doc),
                            [](const Config& table, const ModelContext& context) {
                              return make_component<D>(read_options<O>(table), context);
                            });
}

}  // namespace millrace
