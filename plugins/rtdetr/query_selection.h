// Query selection: the positions of the feature maps that become queries. Shapes: N images, S map
// positions, C channels, Q queries, K classes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "deformable_attention.h"
#include "options.h"
#include "transformer.h"

namespace millrace::rtdetr {

/// The selected queries: up to Q positions with the highest score of any class, in descending
/// order, ties by index.
struct Selection {
  at::Tensor features;    // (N, Q, C)
  at::Tensor logits;      // (N, Q, K)
  at::Tensor box_logits;  // (N, Q, 4)
};

/// The selected queries as input of the decoder, in an ONNX graph.
struct SelectionNodes {
  onnx::Value features, box_logits;
};

class QuerySelection {
 public:
  QuerySelection(const Scope& scope, const RtDetrOptions& options, std::int64_t classes);

  /// Selects the queries of `memory` (N, S, C), which contains the maps of `sizes`.
  Selection operator()(const at::Tensor& memory, const MapSizes& sizes) const;
  SelectionNodes operator()(const onnx::Value& memory, const std::vector<onnx::Value>& sizes) const;

 private:
  std::int64_t queries_;
  Linear output_;
  LayerNorm norm_;
  Linear score_;
  Mlp box_;
};

/// Returns the initial bias of class logits, for a probability of 0.01 per class.
double prior_bias();

/// Creates a box head: three layers, the last one initialised to 0.
Mlp box_head(const Scope& scope, std::int64_t channels);

}  // namespace millrace::rtdetr
