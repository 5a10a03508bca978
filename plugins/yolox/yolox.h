// YOLOX (Ge et al. 2021, "YOLOX: Exceeding YOLO Series in 2021"), a one-stage detector without
// anchors. Weights, losses and detections equal those of the package `yolox`. Shapes: N images, P
// cells of all levels, K classes, F foreground cells, D detections.
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

  // For tests, with pixels (N, 3, H, W) in BGR, 0 .. 255, with sides that are multiples of 32.
  const Pafpn& pyramid() const { return pyramid_; }
  /// Returns the raw outputs; `boxes` as in Predictions.
  Outputs outputs(const at::Tensor& pixels, const NormMode& mode) const;
  /// Returns the losses of pixels and `truths`, whose boxes are in these pixels, on the host.
  LossSums losses_of(const at::Tensor& pixels, const std::vector<Truth>& truths,
                     const StepInfo& step) const;
  /// Returns the detections of each image, best first, in these pixels.
  std::vector<Found> find(const at::Tensor& pixels) const;

 private:
  LossSums compute_losses(const Batch& batch, const StepInfo& step) override;
  std::vector<std::vector<DetectedObject>> find_objects(const Batch& batch,
                                                        DetectionNotes*) override;
  onnx::Objects add_nodes(const onnx::Images& images, bool pasted) const override;
  void on_parameters_changed() override { parameters_.mark_changed(); }
  /// Throws if the data has no object; warns of batch norm per rank.
  std::vector<std::string> check_facts(const TrainingFacts& facts) const override;

  /// Returns BGR pixels, 0 .. 255, in fp32, padded with 114.
  at::Tensor pixels_of(const Batch& batch, cv::Size padded) const;
  Found best(const Outputs& outputs, const Grid& grid, std::int64_t image) const;

  YoloxOptions options_;
  std::int64_t classes_;
  Parameters parameters_;
  Scope root_;
  Pafpn pyramid_;
  std::vector<Head> heads_;  // one per level
};

}  // namespace millrace::yolox
