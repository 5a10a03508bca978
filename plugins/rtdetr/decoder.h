// RT-DETR's decoder: layers that look at the maps where their boxes are, and refine these. Shapes:
// N images, Q queries, S places, C channels, K classes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "deformable_attention.h"
#include "options.h"
#include "transformer.h"

namespace rtdetr {

/// The output of one layer.
struct Prediction {
  at::Tensor logits;         // (N, Q, K); undefined unless requested
  at::Tensor boxes;          // (N, Q, 4), as in box_forms.h
  at::Tensor features = {};  // (N, Q, C), the layer's output
};

/// The output of the last layer, in a graph.
struct PredictionNodes {
  onnx::Value logits, boxes;
};

class Decoder {
 public:
  Decoder(const Scope& scope, const RtDetrOptions& options, std::int64_t classes,
          std::int64_t maps);

  /// Of queries with `features` (N, Q, C) and `box_logits` (N, Q, 4), whose self-attention adds
  /// `mask` (Q, Q), if defined, to its logits. `memory` (N, S, C) are the maps of `sizes`. What
  /// every layer says; with `last_only` only the last has class logits.
  std::vector<Prediction> operator()(const at::Tensor& features, const at::Tensor& box_logits,
                                     const at::Tensor& mask, const at::Tensor& memory,
                                     const MapSizes& sizes, bool last_only) const;
  /// In a graph, where no query is hidden. `sizes`: a list of height and width for each map.
  PredictionNodes operator()(const onnx::Value& features, const onnx::Value& box_logits,
                             const onnx::Value& memory,
                             const std::vector<onnx::Value>& sizes) const;

 private:
  /// Deformable attention around the queries' boxes.
  struct CrossAttention {
    Linear offsets, weights, value, out;
    std::int64_t heads = 1, points = 1;
    double scale = 0.5;  // offsets of `points`, in sides of the box
    at::Tensor operator()(const at::Tensor& x, const at::Tensor& boxes, const at::Tensor& memory,
                          const MapSizes& sizes) const;
    onnx::Value operator()(const onnx::Value& x, const onnx::Value& boxes,
                           const onnx::Value& memory, const std::vector<onnx::Value>& sizes) const;
  };
  CrossAttention cross_attention(const Scope& scope, const RtDetrOptions& options,
                                 std::int64_t maps) const;

  struct Layer {
    SelfAttention self;
    CrossAttention cross;
    LayerNorm self_norm, cross_norm, last_norm;
    Linear hidden, out;
  };

  std::vector<Layer> layers_;
  Mlp position_;
  std::vector<Linear> classes_;
  std::vector<Mlp> boxes_;
};

}  // namespace rtdetr
