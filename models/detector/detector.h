// The whole contract of a model. A plug-in derives from Detector and registers a factory; nothing
// in trainer/ knows any detector by name.
#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
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

struct FigureSums;  // figures.h
class RankSum;
struct ModelContext;

/// What the sum of a loss is to be divided by, e.g. the objects of a batch. Not negative.
struct Count {
  std::string name;
  double number = 0;
};
using Counts = std::vector<Count>;

/// A loss of a batch as a sum, and what it is a mean over. The batch may be a part of the step: a
/// micro-batch or a rank's. The trainer adds up the counts of all parts and divides each sum by the
/// total (or by 1 if that is 0), so that the losses and gradients of the parts add up to those of
/// the whole batch.
struct LossSum {
  std::string name;
  at::Tensor sum;  // one number
  Count over;      // the same name with the same number may stand for several losses
};

/// In a fixed order, the same names for every batch: a batch without objects gives sums and counts
/// of 0. Training descends the sum of all losses.
using LossSums = std::vector<LossSum>;

/// Losses by name, divided.
using Losses = std::vector<std::pair<std::string, at::Tensor>>;

/// Accuracies and the like: quotients by name, both halves summed over a step's micro-batches and
/// ranks before they are divided. Tensors stay on their device until the losses are read.
class Figures {
 public:
  /// `part` of `whole`, each one number, of any type, without gradient.
  void add(std::string name, const at::Tensor& part, const at::Tensor& whole);
  void add(std::string name, double part, double whole);

  /// Part, whole, part, whole, ...: fp32, on their device.
  const std::vector<at::Tensor>& numbers() const { return numbers_; }

  /// In the order of first addition, from the values of `numbers`.
  std::vector<FigureSums> sums(const double* values) const;

 private:
  std::vector<std::string> names_;
  std::vector<at::Tensor> numbers_;
};

/// What a training step may depend on besides the batch, which may be one of several parts of the
/// step: micro-batches or ranks.
struct StepInfo {
  std::uint64_t seed = 0;
  std::int64_t step = 0;
  double progress = 0;         // epochs of samples taken before the step
  bool measured_only = false;  // no training: running statistics are used and stay, as in `detect`
  /// Width and height to pad the batch to: the largest of all ranks, so that they compute what one
  /// process would; 0: its own.
  cv::Size padded = {};
  /// Of all images of the step, without crowd regions: the most objects of an image, and how many
  /// objects have a shape; 0: those of the batch. For what must have one size, or be computed or
  /// left out, in all parts alike.
  std::int64_t most_objects = 0, objects_with_shape = 0;
  std::int64_t first_image = 0;  // place of the batch's first image in the step
  RankSum* ranks = nullptr;      // sums over the step's parts; nullptr: the batch is all of it
  Figures* figures = nullptr;    // nullptr: nobody asks

  /// Of a draw (`stream`: any constant) for image `image`: the same when resumed and in any part.
  Rng rng(std::uint64_t stream, std::size_t image) const {
    return {seed, static_cast<std::uint64_t>(step), stream,
            static_cast<std::uint64_t>(first_image) + image};
  }
};

/// What a training will be like.
struct TrainingFacts {
  std::int64_t ranks = 1;         // processes that share each step
  bool in_micro_batches = false;  // which must not normalise by themselves (train.micro_batch)
  bool starts_random = false;     // no weights are loaded, and none were trained before
  /// Counts the objects in one pass over all samples; empty if these are not known here.
  std::function<ObjectCounts()> count_objects;
};

/// What `detect` finds on its way, for each image of the batch, in pixels of the original images.
struct DetectionNotes {
  /// The regions that a second stage looks at, best first: of no class (label 0), scored by rank.
  std::vector<std::vector<DetectedObject>> proposals;
  /// What it says of them before NMS: all that reach the score threshold, in any order, no masks.
  std::vector<std::vector<DetectedObject>> raw;
};

/// Called through its public functions, which guard, check and name; a detector is what it
/// overrides below them. What it throws or returns wrongly becomes an Error with its title.
class Detector {
 public:
  virtual ~Detector() = default;

  /// Losses of a batch as sums, with gradients. Throws Error for losses that cannot be trained
  /// with: none at all, undefined tensors, more than one number, counts that contradict each other,
  /// or (with gradients enabled) none that a trained parameter has a part in.
  LossSums loss_sums(const Batch& batch, const StepInfo& step);

  /// The counts of these losses, each once; by `compute_counts` if the detector has it, else by
  /// computing the losses.
  Counts counts(const Batch& batch, const StepInfo& step);

  /// The losses of a batch that is the whole step.
  Losses losses(const Batch& batch, const StepInfo& step);

  /// Objects of each image, best score first, computed as `detect_in` says. The detector is given
  /// images of one padded size at a time, each padded as it would be alone (Batch::divisor), so
  /// that results do not depend on the other images. Throws Error for another number of images,
  /// invalid labels, boxes and scores that are not finite, and masks of another size than the
  /// image. `notes`, if not nullptr, is filled; requires gives_notes().
  std::vector<std::vector<DetectedObject>> detect(const Batch& batch,
                                                  DetectionNotes* notes = nullptr);

  /// Adds the nodes of `detect` to the graph of `images`, for `trainer export`: the same objects in
  /// the same order. `pasted`: masks over the whole image. Throws Error, a sentence, for a detector
  /// or an option that cannot be exported.
  onnx::Objects add_to(const onnx::Images& images, bool pasted) const;

  /// To be called after parameters were overwritten.
  void parameters_changed();

  /// Warnings, whole sentences, before a training. Throws ConfigError for one that makes no sense.
  std::vector<std::string> check_training(const TrainingFacts& facts) const;

  /// Type of convolutions and matrix products in `detect`, as autocast: fp32 unless set.
  void detect_in(at::ScalarType type) { detect_type_ = type; }

  /// "detector 'NAME'", in messages.
  const std::string& title() const { return title_; }

  /// The device of the parameters; the CPU without any.
  at::Device device() const;

  /// Every tensor that is trained or saved, on the context's device. Values may be overwritten in
  /// place between calls.
  virtual const Parameters& parameters() const = 0;

  /// False: `detect` never gives masks; asking for their scores is then an error before the first
  /// step.
  virtual bool gives_masks() const { return true; }

  /// Whether `detect` fills notes.
  virtual bool gives_notes() const { return false; }

 private:
  friend std::unique_ptr<Detector> make_detector(const std::string& name, const Config& table,
                                                 const ModelContext& context);

  /// See `loss_sums`. Under at::NoGradGuard the call changes nothing in the model. With
  /// train.micro_batch several threads call it at once, each for a part of the step.
  virtual LossSums compute_losses(const Batch& batch, const StepInfo& step) = 0;

  /// The counts of `compute_losses`, the same names in the same order with the same numbers, for a
  /// detector that knows them without running its network; empty: it does not. Saves steps of
  /// several batches (optimizer.accumulate) the forward pass that would count. Called as
  /// `compute_losses` is.
  virtual Counts compute_counts(const Batch& batch, const StepInfo& step) const {
    static_cast<void>(batch), static_cast<void>(step);
    return {};
  }

  /// See `detect`. Draws nothing at random and keeps no gradients. `notes`: to be filled; nullptr =
  /// not asked for, as always without gives_notes().
  virtual std::vector<std::vector<DetectedObject>> find_objects(const Batch& batch,
                                                                DetectionNotes* notes) = 0;

  /// See `add_to`.
  virtual onnx::Objects add_nodes(const onnx::Images& images, bool pasted) const;

  /// Refreshes what is derived from the parameters.
  virtual void on_parameters_changed() {}

  /// See `check_training`. Asked before the first step, on every rank, and by `trainer doctor`.
  virtual std::vector<std::string> check_facts(const TrainingFacts&) const { return {}; }

  std::string title_ = "the detector";
  std::size_t class_count_ = 0;  // 0: not known
  at::ScalarType detect_type_ = at::kFloat;
};

/// What a detector is built from besides its own options.
struct ModelContext {
  std::vector<std::string> classes;  // names in label order
  std::uint64_t seed = 1;            // of the initial weights
  at::Device device = at::kCPU;      // of its tensors
  // Weights are loaded before anything is computed: they may start with any values.
  bool awaits_weights = false;
};

/// `table` holds the detector's own options.
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
