// RT-DETR's decoder: layers that sample the feature maps at the queries' boxes and refine these.
// Shapes: N images, Q queries, S map positions, C channels, K classes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "deformable_attention.h"
#include "options.h"
#include "transformer.h"

namespace millrace::rtdetr {

/// The output of one layer.
struct Prediction {
  at::Tensor logits;         // (N, Q, K); undefined for layers without requested logits
  at::Tensor boxes;          // (N, Q, 4), as in box_forms.h
  at::Tensor features = {};  // (N, Q, C), the layer's output
};

/// The output of the last layer in an ONNX graph.
struct PredictionNodes {
  onnx::Value logits, boxes;
};

class Decoder {
 public:
  Decoder(const Scope& scope, const RtDetrOptions& options, std::int64_t classes,
          std::int64_t maps);

  /// Returns the output of every layer for queries with `features` (N, Q, C) and `box_logits` (N,
  /// Q, 4). `mask` (Q, Q) is added to the logits of their self-attention; undefined = no mask.
  /// `memory` (N, S, C) contains the feature maps of `sizes`. With `last_only`, only the last layer
  /// has class logits.
  std::vector<Prediction> operator()(const at::Tensor& features, const at::Tensor& box_logits,
                                     const at::Tensor& mask, const at::Tensor& memory,
                                     const MapSizes& sizes, bool last_only) const;
  /// Adds the nodes of the decoder, without a mask, to a graph. `sizes`: a list of height and width
  /// for each map.
  PredictionNodes operator()(const onnx::Value& features, const onnx::Value& box_logits,
                             const onnx::Value& memory,
                             const std::vector<onnx::Value>& sizes) const;

 private:
  /// Deformable attention around the queries' boxes.
  struct CrossAttention {
    Linear offsets, weights, value, out;
    std::int64_t heads = 1, points = 1;
    double scale = 0.5;  // box sides spanned by an offset of value `points`
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

}  // namespace millrace::rtdetr
