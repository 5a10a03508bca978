// The whole contract of a model. A plug-in derives from Detector and registers a factory; nothing in trainer/
// knows any detector by name.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/registry.h"
#include "coco/boxes.h"
#include "coco/masks.h"
#include "dataflow/sample.h"
#include "trainer/figures.h"
#include "trainer/loss_totals.h"
#include "trainer/parameters.h"

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

/// What a training step may depend on besides the batch, which may be one of several parts of the step: of its
/// micro-batches, or of its ranks.
struct StepInfo {
  std::uint64_t seed = 0;
  std::int64_t step = 0;
  bool measured_only =
      false;  // nobody trains: running statistics are used as `detect` does, and stay as they are
  std::int64_t first_image = 0;  // place of the batch's first image among all of the step
  LossTotals* totals = nullptr;  // nullptr: the batch is the whole step
  RankSum* ranks = nullptr;      // for what is summed over the ranks; nullptr: there is one
  Figures* figures = nullptr;    // where accuracies and the like go; nullptr: nobody asks

  /// Random numbers for the batch's image `image`: the same in a resumed run, and in whichever part the image comes.
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

  /// Losses of a batch with gradients attached: its share of the losses of all images of the step. Without gradients
  /// (at::NoGradGuard) the call changes nothing in the model.
  virtual Losses losses(const Batch& batch, const StepInfo& step) = 0;

  /// Objects of each image, best score first. Draws nothing at random and keeps no gradients.
  virtual std::vector<std::vector<DetectedObject>> detect(const Batch& batch) = 0;

  /// Every tensor that is trained or saved, all on the context's device. Values may be overwritten in place between calls.
  virtual const Parameters& parameters() const = 0;

  /// Called after parameters were overwritten (weights loaded, checkpoint resumed): refresh what is derived from them.
  virtual void parameters_changed() {}

  /// False: what `detect` finds never has masks. Who asks for their scores is then told before the first step.
  virtual bool gives_masks() const { return true; }

  /// How messages call it; make_detector says which it is.
  std::string title = "the detector";
};

/// What a detector is called through: what it throws becomes an Error that begins with its title.
Losses losses_of(Detector& detector, const Batch& batch, const StepInfo& step);
std::vector<std::vector<DetectedObject>> detect_with(Detector& detector, const Batch& batch);
void tell_parameters_changed(Detector& detector);

/// What a detector is built from besides its own options.
struct ModelContext {
  std::vector<std::string> classes;  // names in label order
  std::uint64_t seed = 1;            // of the initial weights
  at::Device device = at::kCPU;      // where its tensors are to lie
};

/// `table` is the config's [model]; keys "name" and "weights" are not the factory's.
using DetectorFactory =
    std::function<std::unique_ptr<Detector>(const Config& table, const ModelContext& context)>;

/// All known detectors.
Registry<DetectorFactory>& detectors();

/// Makes the detector of that name. Throws ConfigError for options that it refuses, Error naming it for anything else
/// that its factory throws.
std::unique_ptr<Detector> make_detector(const std::string& name, const Config& table,
                                        const ModelContext& context);

}  // namespace millrace
