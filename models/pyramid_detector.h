// What detectors on a feature pyramid share: a class derived from this one adds its heads.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "millrace/models/backbones/pyramid_options.h"
#include "millrace/models/detector/detector.h"
#include "millrace/models/layers/layers.h"
#include "millrace/models/layers/objects.h"
#include "millrace/models/layers/results.h"
#include "millrace/models/onnx/detection.h"
#include "millrace/models/ops/boxes.h"

namespace millrace {

class Pyramid;
struct View;

/// Their common options. Defaults are detectron2's.
struct PyramidDetectorOptions {
  /// Whose numeric switches the other options start from.
  enum class Style { detectron2, torchvision };
  friend std::vector<std::string> value_names(Style) { return {"detectron2", "torchvision"}; }

  Style style = Style::detectron2;
  PyramidOptions pyramid;
  BoxOptions boxes;
  DetectionOptions detection;

  void describe(Options& o);
  void use_torchvision() { pyramid.use_torchvision(); }

  /// Throws ConfigError for values that contradict each other (`require`) and for one that changes
  /// nothing (`defaults.refuse_unused`). A derived struct with a check of its own declares it with
  /// both parameters, as any other would hide this one, and calls this one first.
  void check(const Config& table, const Options& defaults) const;

  /// The defaults of T, a struct derived from this one, in the style that the [model] table asks
  /// for: its own are detectron2's, `use_torchvision()` turns them into the other set. Then
  /// `adapt_to(table)`, if there is one, may change those that another key chooses. Throws
  /// ConfigError as `check` does.
  template <class T>
  static T defaults_for(const Config& table) {
    T defaults;
    const auto* style = table.is_table() ? table.find("style") : nullptr;
    const auto* name = style ? std::get_if<std::string>(&style->data) : nullptr;
    if (name && *name == "torchvision") {
      defaults.style = Style::torchvision;
      defaults.use_torchvision();
    }
    if constexpr (requires { defaults.adapt_to(table); }) defaults.adapt_to(table);
    T asked = defaults, unchanged = defaults;
    Options options, normal;
    asked.describe(options);
    unchanged.describe(normal);
    options.read(table, {"type", "weights"});
    asked.check(table, normal);
    return defaults;
  }
};

/// What a detector finds on its way (DetectionNotes), of each image, in the network's pixels.
struct Noted {
  std::vector<Found> proposals, raw;
};

/// The maps of a batch: the five levels of its pyramid, whose strides FpnTop gives, or C4 alone, of
/// stride 16. Where a stride does not divide the input's side, backbones round in different ways:
/// take sides from the map.
struct Features {
  std::vector<at::Tensor> maps;                  // fine to coarse, each (N, C, H_l, W_l)
  std::pair<std::int64_t, std::int64_t> padded;  // (height, width) of the input
  std::vector<ImageSize> sizes;                  // (N)
  NormPass pass;
  Noted* noted = nullptr;  // what `find` adds on its way; nullptr: nobody asks
};

/// Features in a graph.
struct FeatureNodes {
  std::vector<onnx::Value> maps;  // fine to coarse, each (N, C, H_l, W_l)
  onnx::Value padded;             // a list of height and width
  onnx::Value limits;             // (N, 4): width, height, width, height of the images
};

class PyramidDetector : public Detector {
 public:
  ~PyramidDetector() override;

  const Parameters& parameters() const final { return parameters_; }

 protected:
  /// `mask_paste`: any value without masks.
  PyramidDetector(const PyramidDetectorOptions& options, FpnTop top, MaskPaste mask_paste,
                  const ModelContext& context);

  /// Where heads declare their tensors.
  const Scope& root() const { return root_; }

  const Pyramid& pyramid() const { return *pyramid_; }

  /// False with test-time augmentation, where several views are merged.
  bool has_one_view() const;

  /// Refuses data without an object; warns of frozen layers that keep random values, and of batch
  /// norm by rank.
  std::vector<std::string> check_facts(const TrainingFacts& facts) const override;

 private:
  LossSums compute_losses(const Batch& batch, const StepInfo& step) final;

  /// With test-time augmentation, what is found in all views is merged by one more NMS; masks are
  /// the mean over the views of the merged boxes' masks (detectron2's GeneralizedRCNNWithTTA).
  std::vector<std::vector<DetectedObject>> find_objects(const Batch& batch,
                                                        DetectionNotes* notes) final;

  /// Test-time augmentation in other sizes is refused for several images at once.
  onnx::Objects add_nodes(const onnx::Images& images, bool pasted) const final;

  void on_parameters_changed() final { parameters_.mark_changed(); }

  virtual LossSums head_losses(const Features& features, const std::vector<Truth>& truths,
                               const StepInfo& step) = 0;

  /// What the heads find in each image.
  virtual std::vector<Found> find(const Features& features) = 0;

  /// Mask probabilities of what was found, (D over all images, M, M); undefined: no masks.
  virtual at::Tensor masks(const Features&, const std::vector<Found>&) { return {}; }

  /// `find` and `masks` in a graph; the objects' boxes are in the features' pixels. A detector
  /// without the first cannot be exported.
  virtual FoundNodes find_in_graph(const FeatureNodes& features) const;
  virtual onnx::Value masks_in_graph(const FeatureNodes&, const onnx::Objects&) const { return {}; }
  /// Sides of the masks.
  virtual std::int64_t mask_cells() const { return 0; }

  Features features(const Batch& batch, const NormPass& pass, cv::Size padded = {}) const;
  /// Appends the features of the first views, as many as fit kKeptBytes.
  std::vector<Found> find_in_views(const Batch& batch, std::vector<Features>& kept);
  at::Tensor masks_in_views(const Batch& batch, const std::vector<Found>& found,
                            const std::vector<Features>& kept);

  PyramidDetectorOptions options_;
  std::int64_t classes_;
  std::vector<View> views_;
  MaskPaste mask_paste_;
  Parameters parameters_;
  Scope root_;
  std::unique_ptr<Pyramid> pyramid_;
};

}  // namespace millrace
