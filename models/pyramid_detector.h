// The common part of detectors on a feature pyramid. A derived class adds its heads.
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

/// The options that all detectors on a feature pyramid have. The defaults are detectron2's.
struct PyramidDetectorOptions {
  /// The library whose numeric defaults the other options take.
  enum class Style { detectron2, torchvision };
  friend std::vector<std::string> value_names(Style) { return {"detectron2", "torchvision"}; }

  Style style = Style::detectron2;
  PyramidOptions pyramid;
  BoxOptions boxes;
  DetectionOptions detection;

  void describe(Options& o);
  void use_torchvision() { pyramid.use_torchvision(); }

  /// Throws ConfigError for values that contradict each other (`require`) and for a value that has
  /// no effect (`defaults.refuse_unused`). A derived struct with its own check declares it with
  /// both parameters, since any other signature would hide this function, and calls this one first.
  void check(const Config& table, const Options& defaults) const;

  /// Returns the defaults of T, a struct derived from this one, in the style that the [model] table
  /// chooses: detectron2's, or torchvision's after `use_torchvision()`. If T has `adapt_to(table)`,
  /// it may then change defaults that depend on another key. Throws ConfigError as `check` does.
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

/// The intermediate results of DetectionNotes for each image, in the pixels of the network's input.
struct DetectionIntermediates {
  std::vector<Found> proposals, raw;
};

/// The maps of a batch: the five levels of its pyramid, with the strides of FpnTop, or C4 alone
/// with stride 16. If a stride does not divide the input's side, backbones round differently: take
/// sides from the map.
struct Features {
  std::vector<at::Tensor> maps;                  // fine to coarse, each (N, C, H_l, W_l)
  std::pair<std::int64_t, std::int64_t> padded;  // (height, width) of the input
  std::vector<ImageSize> sizes;                  // (N)
  NormMode mode;
  DetectionIntermediates* intermediates =
      nullptr;  // receives the intermediate results of `find`; nullptr = not wanted
};

/// The features of a batch as values of an ONNX graph.
struct FeatureNodes {
  std::vector<onnx::Value> maps;  // fine to coarse, each (N, C, H_l, W_l)
  onnx::Value padded;             // list of height and width
  onnx::Value limits;             // (N, 4): width, height, width, height of each image
};

class PyramidDetector : public Detector {
 public:
  ~PyramidDetector() override;

  const Parameters& parameters() const final { return parameters_; }

 protected:
  /// `mask_paste` is ignored if the detector gives no masks.
  PyramidDetector(const PyramidDetectorOptions& options, FpnTop top, MaskPaste mask_paste,
                  const ModelContext& context);

  /// The scope in which heads declare their parameters.
  const Scope& root() const { return root_; }

  const Pyramid& pyramid() const { return *pyramid_; }

  /// Returns false with test-time augmentation, which merges several views.
  bool has_one_view() const;

  /// Throws ConfigError if the data has no object. Warns of frozen layers with random values and of
  /// batch norm that each rank computes alone.
  std::vector<std::string> check_facts(const TrainingFacts& facts) const override;

 private:
  LossSums compute_losses(const Batch& batch, const StepInfo& step) final;

  /// With test-time augmentation, another NMS merges the detections of all views, and masks are the
  /// mean of the merged boxes' masks over the views (detectron2's GeneralizedRCNNWithTTA).
  std::vector<std::vector<DetectedObject>> find_objects(const Batch& batch,
                                                        DetectionNotes* notes) final;

  /// Throws Error for test-time augmentation in other sizes with several images.
  onnx::Objects add_nodes(const onnx::Images& images, bool pasted) const final;

  void on_parameters_changed() final { parameters_.mark_changed(); }

  virtual LossSums head_losses(const Features& features, const std::vector<Truth>& truths,
                               const StepInfo& step) = 0;

  /// Returns the detections of the heads for each image.
  virtual std::vector<Found> find(const Features& features) = 0;

  /// Returns mask probabilities (D, M, M) of the D detections of all images; undefined = no masks.
  virtual at::Tensor masks(const Features&, const std::vector<Found>&) { return {}; }

  /// `find` and `masks` as nodes of an ONNX graph. The objects' boxes are in the features' pixels.
  /// A detector that does not override find_in_graph cannot be exported.
  virtual FoundNodes find_in_graph(const FeatureNodes& features) const;
  virtual onnx::Value masks_in_graph(const FeatureNodes&, const onnx::Objects&) const { return {}; }
  /// The side M of the masks.
  virtual std::int64_t mask_cells() const { return 0; }

  Features features(const Batch& batch, const NormMode& mode, cv::Size padded = {}) const;
  /// Detects in all views. Appends the features of the first views to `kept`, as many as fit in
  /// kKeptBytes.
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
