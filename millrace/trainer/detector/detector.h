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
#include "millrace/coco/masks/boxes.h"
#include "millrace/coco/masks/masks.h"
#include "millrace/dataflow/detection/sample.h"
#include "millrace/trainer/detector/figures.h"
#include "millrace/trainer/detector/loss_totals.h"
#include "millrace/trainer/detector/training_facts.h"
#include "millrace/weights/parameters.h"

namespace millrace {

class RankSum;

/// Scalars by name in a fixed order; training descends their sum.
using Losses = std::vector<std::pair<std::string, at::Tensor>>;

/// One object found in an image.
struct DetectedObject {
  Box box;                 // pixels of the original image
  std::int32_t label = 0;  // 0 .. classes - 1
  float score = 0;         // 0 .. 1
  coco::Rle mask;          // of the original image's size; no counts where the model gives no masks
};

/// What a training step may depend on besides the batch, which may be one of several parts of the
/// step: of its micro-batches, or of its ranks.
struct StepInfo {
  std::uint64_t seed = 0;
  std::int64_t step = 0;
  // Nobody trains: running statistics are used as `detect` does, and stay as they are
  bool measured_only = false;
  /// Width and height that the batch is to be padded to, at least its own: the largest of all
  /// ranks, so that they compute what one process would; 0: its own.
  cv::Size padded = {};
  std::int64_t first_image = 0;  // place of the batch's first image among all of the step
  LossTotals* totals = nullptr;  // nullptr: the batch is the whole step
  RankSum* ranks = nullptr;      // for what is summed over the ranks; nullptr: there is one
  Figures* figures = nullptr;    // where accuracies and the like go; nullptr: nobody asks

  /// Random numbers for the batch's image `image`: the same in a resumed run, and in whichever part
  /// the image comes.
  Rng rng(std::uint64_t stream, std::size_t image) const {
    return {seed, static_cast<std::uint64_t>(step), stream,
            static_cast<std::uint64_t>(first_image) + image};
  }

  /// `local` summed over all parts of the step: what losses over them are divided by.
  double total(std::string_view name, double local) const {
    return totals ? totals->sum(name, local) : local;
  }
};

class Detector {
 public:
  virtual ~Detector() = default;

  /// Losses of a batch with gradients attached: its share of the losses of all images of the step.
  /// Without gradients (at::NoGradGuard) the call changes nothing in the model.
  virtual Losses losses(const Batch& batch, const StepInfo& step) = 0;

  /// Objects of each image, best score first. Draws nothing at random and keeps no gradients.
  virtual std::vector<std::vector<DetectedObject>> detect(const Batch& batch) = 0;

  /// Every tensor that is trained or saved, all on the context's device. Values may be overwritten
  /// in place between calls.
  virtual const Parameters& parameters() const = 0;

  /// Called after parameters were overwritten (weights loaded, checkpoint resumed): refresh what is
  /// derived from them.
  virtual void parameters_changed() {}

  /// False: what `detect` finds never has masks. Who asks for their scores is then told before the
  /// first step.
  virtual bool gives_masks() const { return true; }

  /// About how many bytes a step keeps from the forward to the backward pass, for a batch of so
  /// many images, `pixels` in all with their padding; 0: nobody knows. It decides nothing but
  /// whether a step is tried that cannot fit.
  virtual double activation_bytes(std::int64_t images, double pixels) const {
    static_cast<void>(images), static_cast<void>(pixels);
    return 0;
  }

  /// Whether a training makes sense, asked before its first step, on every rank, and by `trainer
  /// doctor`. Throws ConfigError where it cannot; gives warnings, whole sentences, where it may not
  /// be what was meant.
  virtual std::vector<std::string> check_training(const TrainingFacts&) const { return {}; }

  /// How messages call it, and how many classes it was made for (0: not known); make_detector says
  /// so.
  std::string title = "the detector";
  std::size_t class_count = 0;
};

/// A detector's losses. What it throws becomes an Error that begins with its title; so do losses
/// that cannot be trained with: none at all, an undefined tensor, more than one number, or (where
/// gradients are worked out) not one that a trained parameter has a part in.
Losses losses_of(Detector& detector, const Batch& batch, const StepInfo& step);

/// What a detector finds in each image of a batch. It is given images of one padded size at a time,
/// each padded as it would be alone (Batch::divisor): what is found in an image does not depend on
/// the others. What it throws becomes an Error that begins with its title; so do answers for fewer
/// or more images, labels that are no class, boxes and scores that are not finite, and masks of
/// another size than the image.
std::vector<std::vector<DetectedObject>> detect_with(Detector& detector, const Batch& batch);

/// What a detector warns of before a training. Throws ConfigError where it refuses; anything else
/// that it throws becomes an Error that begins with its title.
std::vector<std::string> warnings_of(const Detector& detector, const TrainingFacts& facts);

/// Tells a detector that its parameters were overwritten; what it throws becomes an Error that
/// begins with its title.
void tell_parameters_changed(Detector& detector);

/// What a detector is built from besides its own options.
struct ModelContext {
  std::vector<std::string> classes;  // names in label order
  std::uint64_t seed = 1;            // of the initial weights
  at::Device device = at::kCPU;      // where its tensors are to lie
};

/// `table` holds the detector's own options.
using DetectorFactory =
    std::function<std::unique_ptr<Detector>(const Config& table, const ModelContext& context)>;

/// All known detectors.
Registry<DetectorFactory>& detectors();

/// Registers the class `D` as [model] name = NAME; it is made from its options `O` and a
/// ModelContext as make_component says. At namespace scope:
///
///   MILLRACE_REGISTER(register_detector<RetinaNet>("retinanet", "one stage, focal loss"));
template <std::derived_from<Detector> D, class O = OptionsOf<D>>
bool register_detector(const std::string& name, std::string doc) {
  return detectors().add<O>(name, std::move(doc),
                            [](const Config& table, const ModelContext& context) {
                              return make_component<D>(read_options<O>(table), context);
                            });
}

/// What [model] says besides the keys that every detector has: name, weights and force_weights.
Config own_options(const Config& model_table);

/// Makes the detector of that name from [model]. Throws ConfigError for options that it refuses,
/// Error naming it for anything else that its factory throws.
std::unique_ptr<Detector> make_detector(const std::string& name, const Config& table,
                                        const ModelContext& context);

}  // namespace millrace
