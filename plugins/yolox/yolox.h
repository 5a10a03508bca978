// YOLOX (Ge et al. 2021, "YOLOX: Exceeding YOLO Series in 2021"): one stage, no anchors. Weights,
// losses and detections are those of the package `yolox`. Shapes: N images, P cells of all levels,
// K classes, F cells that learn an object, D detections.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <millrace/models/detector/detector.h>
#include <millrace/models/layers/layers.h>
#include <millrace/models/layers/objects.h>

#include "assignment.h"
#include "network.h"
#include "options.h"

namespace millrace::yolox {

class Yolox final : public Detector {
 public:
  using Options = YoloxOptions;

  Yolox(const YoloxOptions& options, const ModelContext& context);

  const Parameters& parameters() const override { return parameters_; }
  bool gives_masks() const override { return false; }

  // For tests: pixels (N, 3, H, W), BGR 0 .. 255, whose sides are multiples of 32.
  const Pafpn& pyramid() const { return pyramid_; }
  /// Raw outputs: `boxes` as in Predictions.
  Outputs outputs(const at::Tensor& pixels, const NormPass& pass) const;
  /// Of pixels with the objects of `truths`, whose boxes are in these pixels, on the host.
  LossSums losses_of(const at::Tensor& pixels, const std::vector<Truth>& truths,
                     const StepInfo& step) const;
  /// Best first, in these pixels.
  std::vector<Found> find(const at::Tensor& pixels) const;

 private:
  LossSums compute_losses(const Batch& batch, const StepInfo& step) override;
  std::vector<std::vector<DetectedObject>> find_objects(const Batch& batch,
                                                        DetectionNotes*) override;
  onnx::Objects add_nodes(const onnx::Images& images, bool pasted) const override;
  void on_parameters_changed() override { parameters_.mark_changed(); }
  /// Refuses data without an object; warns of batch norm by rank.
  std::vector<std::string> check_facts(const TrainingFacts& facts) const override;

  /// BGR 0 .. 255 in fp32, padded with the level 114.
  at::Tensor pixels_of(const Batch& batch, cv::Size padded) const;
  Found best(const Outputs& outputs, const Grid& grid, std::int64_t image) const;

  YoloxOptions options_;
  std::int64_t classes_;
  Parameters parameters_;
  Scope root_;
  Pafpn pyramid_;
  std::vector<Head> heads_;  // of the levels
};

}  // namespace millrace::yolox
