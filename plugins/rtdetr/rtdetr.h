// [model] type = "rtdetr": a transformer that detects in real time, without NMS (Zhao et al. 2024,
// "DETRs beat YOLOs on real-time object detection"; Lv et al. 2024, "RT-DETRv2").
#pragma once

#include <millrace/models/detector/detector.h>
#include <millrace/models/onnx/detection.h>
#include <string>
#include <vector>

#include "network.h"
#include "options.h"

namespace millrace::rtdetr {

class RtDetr final : public Detector {
 public:
  using Options = RtDetrOptions;

  /// Throws ConfigError for a device other than the CPU.
  RtDetr(const RtDetrOptions& options, const ModelContext& context);

  const Parameters& parameters() const override { return parameters_; }
  bool gives_masks() const override { return false; }

 private:
  /// Losses are normalised by the number of objects, denoising losses by the number of objects in
  /// all groups.
  LossSums compute_losses(const Batch& batch, const StepInfo& step) override;
  LossDivisors compute_counts(const Batch& batch, const StepInfo& step) const override;
  std::vector<std::vector<DetectedObject>> find_objects(const Batch& batch,
                                                        DetectionNotes*) override;
  onnx::Objects add_nodes(const onnx::Images& images, bool pasted) const override;
  void on_parameters_changed() override { parameters_.mark_changed(); }
  std::vector<std::string> check_facts(const TrainingFacts& facts) const override;

  RtDetrOptions options_;
  Parameters parameters_;
  Network network_;
};

/// Returns the ground truth of a batch whose pixels are padded to width x height.
std::vector<Target> targets_of(const Batch& batch, cv::Size padded);

/// Returns the weighted losses over all queries: `loss_vfl`, `loss_bbox` and `loss_giou` of the
/// last layer; with suffix "_aux", those of the other layers and of query selection; with suffix
/// "_dn", those of denoising the objects `denoised`.
LossSums losses_of(const Network::Output& output, const std::vector<Target>& targets,
                   const std::vector<Target>& denoised, const DenoisingShape& shape,
                   const RtDetrOptions& options);

}  // namespace millrace::rtdetr
