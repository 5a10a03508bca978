// Published results of Mask R-CNN R50-FPN on many GPUs, compared with the model: docs/scaling.md.
#pragma once

#include <string>
#include <vector>

#include "tests/bench/scaling/scaling_model.h"

namespace millrace::scaling {

/// A published value and the model's prediction.
struct Comparison {
  std::string what;
  double published = 0, predicted = 0;
  bool fitted = false;  // the model was fitted to this value

  double error() const { return predicted / published - 1; }
};

/// Returns the fp32 gradients of our Mask R-CNN R50-FPN (configs/coco/mask_rcnn_R50_FPN_1x.toml),
/// as measured by `bench_scaling --gradients CONFIG`.
std::vector<Gradient> mask_rcnn_gradients();

/// Returns the spread of the time per image, fitted to two of the H100 values. It is the only
/// constant that all systems share.
double fitted_spread();

/// Networks of nodes with eight GPUs: MLPerf's DGX machines and AWS's p3dn.
Network dgx_h100();
Network dgx_a100();
Network p3dn();

/// Returns the compute time that is fitted to MLPerf's H100 results.
Compute mlperf_h100();

/// Returns the seconds of a step for several numbers of GPUs. Values that were not fitted are
/// predicted.
std::vector<Comparison> published_steps();
/// Returns the seconds of a step on 8 GPUs, predicted from the published speed of one GPU.
std::vector<Comparison> published_first_nodes();
/// Returns the seconds of whole training runs, predicted from their step times.
std::vector<Comparison> published_trainings();

}  // namespace millrace::scaling
