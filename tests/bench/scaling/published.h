// What others have published about Mask R-CNN R50-FPN on many GPUs, beside what the model says:
// docs/scaling.md.
#pragma once

#include <string>
#include <vector>

#include "tests/bench/scaling/scaling_model.h"

namespace millrace::scaling {

/// A figure and the model's.
struct Comparison {
  std::string what;
  double published = 0, predicted = 0;
  bool fitted = false;  // the model was given this figure

  double error() const { return predicted / published - 1; }
};

/// Gradients of our Mask R-CNN R50-FPN (configs/coco/mask_rcnn_R50_FPN_1x.toml), fp32, as
/// `bench_scaling CONFIG` finds them.
std::vector<Gradient> mask_rcnn_gradients();

/// Spread of an image's time, from two of the H100 figures; the only constant that all systems
/// share.
double fitted_spread();

/// Nodes of eight GPUs. MLPerf's DGX machines and AWS's p3dn.
Network dgx_h100();
Network dgx_a100();
Network p3dn();

/// A step of MLPerf's H100, as fitted.
Compute mlperf_h100();

/// Seconds of a step on more GPUs than were measured.
std::vector<Comparison> published_steps();
/// Seconds of a step on 8 GPUs, from the published speed of one.
std::vector<Comparison> published_first_nodes();
/// Seconds of whole trainings, from their steps.
std::vector<Comparison> published_trainings();

}  // namespace millrace::scaling
