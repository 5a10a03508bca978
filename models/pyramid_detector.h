// What detectors on a feature pyramid share: a class of this kind adds its heads and nothing else.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "models/backbones/pyramid.h"
#include "models/layers/box_options.h"
#include "models/layers/detections.h"
#include "models/layers/truth.h"
#include "models/layers/views.h"
#include "trainer/detector.h"

namespace millrace {

/// The options that they share. Defaults are detectron2's.
struct PyramidDetectorOptions {
  std::string style = "detectron2";
  PyramidOptions pyramid;
  BoxOptions boxes;
  DetectionOptions detection;
  TestViews views;

  void describe(Options& o);
  void use_torchvision() { pyramid.use_torchvision(); }
  void check(const Config& table) const;
};

/// The pyramid of a batch.
struct Features {
  std::vector<at::Tensor> maps;                  // fine to coarse, each (N, C, H_l, W_l)
  std::pair<std::int64_t, std::int64_t> padded;  // the batch's (height, width)
  std::vector<ImageSize> sizes;                  // (N)
  NormPass pass;
};

class PyramidDetector : public Detector {
 public:
  Losses losses(const Batch& batch, const StepInfo& step) final;

  /// With test-time augmentation, what is found in all views is merged by one more NMS; masks are the mean of what each
  /// view says of the merged boxes (detectron2's GeneralizedRCNNWithTTA).
  std::vector<std::vector<DetectedObject>> detect(const Batch& batch) final;

  const Parameters& parameters() const final { return parameters_; }
  void parameters_changed() override { pyramid_.refresh(); }

 protected:
  /// `mask_paste` as in paste_mask.
  PyramidDetector(const PyramidDetectorOptions& options, FpnTop top, std::string mask_paste,
                  const ModelContext& context);

  /// Where heads declare their tensors.
  const Scope& root() const { return root_; }

 private:
  virtual Losses head_losses(const Features& features, const std::vector<Truth>& truths,
                             const StepInfo& step) = 0;

  /// What the heads find in each image.
  virtual std::vector<Found> find(const Features& features) = 0;

  /// Mask probabilities of what was found, (D over all images, M, M); undefined where there are none.
  virtual at::Tensor masks(const Features&, const std::vector<Found>&) { return {}; }

  Features features(const Batch& batch, const NormPass& pass) const;
  std::vector<Found> find_in_views(const Batch& batch);
  at::Tensor masks_in_views(const Batch& batch, const std::vector<Found>& found);

  std::vector<View> views_;
  DetectionOptions detection_;
  double box_offset_;
  std::string mask_paste_;
  Parameters parameters_;
  Scope root_;
  Pyramid pyramid_;
};

}  // namespace millrace
