// The network and losses of the second stage (Girshick 2015): classifies regions and refines their
// boxes. Shapes: R regions, K classes, B groups of box deltas: one per class (plus one for a
// background that comes first), or a single one.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "millrace/models/detector/detector.h"
#include "millrace/models/layers/layers.h"
#include "millrace/models/layers/losses.h"
#include "millrace/models/layers/objects.h"
#include "millrace/models/maskrcnn/regions.h"

namespace millrace {

enum class BoxHeadType {
  two_fc,            // two linear layers
  four_conv_one_fc,  // four convolutions and one linear layer
  mean,              // mean over a region's cells
};
inline std::vector<std::string> value_names(BoxHeadType) { return {"2fc", "4conv1fc", "mean"}; }

struct BoxHeadOptions {
  BoxHeadType type = BoxHeadType::two_fc;
  Norm norm = Norm::none;
  std::int64_t pooler_resolution = 7;
  std::int64_t fc_dim = 1024;
  bool cls_agnostic_bbox_reg = false;
  BoxLoss loss;
  double label_smoothing = 0;

  void describe(Options& o);
  void check(const Config& table, const Options& defaults) const;
};

class BoxHead {
 public:
  struct Output {
    at::Tensor logits;  // (R, K + 1)
    at::Tensor deltas;  // (R, B, 4)
  };

  /// Declares its parameters under the two scopes for regions of `in` channels and
  /// `options.pooler_resolution` cells. `first` is the index of the first class: 1 if the
  /// background is class 0, 0 if it is the last.
  BoxHead(const Scope& head, const Scope& predictor, const BoxHeadOptions& options,
          const BoxCoder& coder, std::int64_t in, std::int64_t classes, std::int64_t first);

  /// Takes (R, C, size, size); returns (R, channels).
  at::Tensor hidden(const at::Tensor& pooled, const NormMode& mode) const;
  Output operator()(const at::Tensor& pooled, const NormMode& mode) const;

  /// Logits (R, K + 1) and deltas (R, B, 4).
  struct Nodes {
    onnx::Value logits, deltas;
  };
  Nodes operator()(const onnx::Value& pooled) const;
  onnx::Value scores(const Nodes& output) const;
  onnx::Value boxes(const onnx::Value& deltas, const onnx::Value& regions) const;

  /// Returns "loss_classifier" and "loss_box_reg" over all regions of the batch. `number`, a suffix
  /// for the stage, is appended to the names of losses, counts and metrics.
  LossSums losses(const Output& output, const SampledRegions& regions,
                  const std::vector<Truth>& truths, const StepInfo& step,
                  const std::string& number) const;

  /// Returns probabilities of the K classes, (R, K).
  at::Tensor scores(const Output& output) const;
  /// Returns boxes of each class from regions (R, 4): (R, K, 4), or (R, 1, 4) for all classes.
  at::Tensor boxes(const at::Tensor& deltas, const at::Tensor& regions) const;

  std::int64_t classes() const { return classes_; }

 private:
  /// Adds accuracies of the logits (R, K + 1) for labels (R); `foreground`: indices of the
  /// foreground rows.
  void add_metrics(const at::Tensor& logits, const at::Tensor& labels, const at::Tensor& foreground,
                   double images, Metrics& metrics, const std::string& number) const;

  std::int64_t background() const { return first_ ? 0 : classes_; }

  BoxHeadOptions options_;
  BoxCoder coder_;
  std::int64_t classes_, first_;
  std::vector<ConvNorm> convs_;
  std::vector<Linear> layers_;
  Linear logits_, deltas_;
};

}  // namespace millrace
