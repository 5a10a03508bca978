// What detectors on a feature pyramid share: a class of this kind adds its heads and nothing else.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "models/backbones/pyramid.h"
#include "models/layers/detections.h"
#include "models/layers/truth.h"
#include "trainer/detector.h"

namespace millrace {

/// The pyramid of a batch.
struct Features {
  std::vector<at::Tensor> maps;  // P2..P6, each (N, C, height / stride, width / stride)
  std::pair<std::int64_t, std::int64_t> padded;  // the batch's (height, width)
  std::vector<ImageSize> sizes;                  // (N)
};

class PyramidDetector : public Detector {
 public:
  Losses losses(const Batch& batch, const StepInfo& step) final;
  std::vector<std::vector<DetectedObject>> detect(const Batch& batch) final;
  const Parameters& parameters() const final { return parameters_; }
  void parameters_changed() override { pyramid_.refresh(); }

 protected:
  /// `mask_paste` as in paste_mask.
  PyramidDetector(const PyramidOptions& options, std::string mask_paste,
                  const ModelContext& context)
      : root_(parameters_, context.seed),
        pyramid_(root_ / "backbone", options),
        mask_paste_(std::move(mask_paste)) {}

  /// Where heads declare their tensors.
  const Scope& root() const { return root_; }

 private:
  virtual Losses head_losses(const Features& features, const std::vector<Truth>& truths,
                             const StepInfo& step) = 0;

  /// What the heads find in each image.
  virtual std::vector<Found> find(const Features& features) = 0;

  /// Mask probabilities of what was found, (D over all images, M, M); undefined where there are none.
  virtual at::Tensor masks(const Features&, const std::vector<Found>&) { return {}; }

  Features features(const Batch& batch, bool training) const;

  Parameters parameters_;
  Scope root_;
  Pyramid pyramid_;
  std::string mask_paste_;
};

}  // namespace millrace
