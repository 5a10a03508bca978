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
#include "millrace/coco/masks/masks.h"
#include "millrace/dataflow/detection/sample.h"
#include "millrace/weights/parameters.h"

namespace millrace {

struct FigureSums;  // figures.h
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

/// Sums over the parts of a step: its micro-batches (optimizer.accumulate) and its ranks. A loss
/// that is a mean over what was sampled is a sum over the part's share divided by such a total; the
/// parts' losses then add up to the loss of the whole batch, and their gradients to its gradient.
class LossTotals {
 public:
  virtual ~LossTotals() = default;

  /// `local`, this part's share, summed over all parts. Every part asks for the same names in the
  /// same order, also where its share is 0. A number that the host knows already: nothing waits for
  /// the device.
  virtual double sum(std::string_view name, double local) = 0;
};

/// Quotients by name. Both halves are summed over a step's micro-batches and ranks before they are
/// divided, so that a share is one of all regions and not a mean of shares. Tensors stay on their
/// device until the losses are read.
class Figures {
 public:
  /// `part` of `whole`, each one number, of any type, without gradient.
  void add(std::string name, const at::Tensor& part, const at::Tensor& whole);
  void add(std::string name, double part, double whole);

  /// Parts and wholes, one after the other: what `sums` needs the values of. fp32, on the device
  /// that they were given on.
  const std::vector<at::Tensor>& numbers() const { return numbers_; }

  /// In the order in which they were first added, from the values of `numbers`.
  std::vector<FigureSums> sums(const double* values) const;

 private:
  std::vector<std::string> names_;
  std::vector<at::Tensor> numbers_;
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

/// What a training will be like.
struct TrainingFacts {
  std::int64_t ranks = 1;      // processes that share each step
  bool starts_random = false;  // no weights are loaded, and none were trained before
  /// Counts what there is to learn: one pass over all samples. Empty where the samples are not
  /// known here.
  std::function<ObjectCounts()> count_objects;
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

}  // namespace millrace
