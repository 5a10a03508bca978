// Which places of the maps become queries. Shapes: N images, S places, C channels, Q queries, K
// classes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "deformable_attention.h"
#include "options.h"
#include "transformer.h"

namespace rtdetr {

/// A box around each place of the maps, as logits (1, S, 4), and 1 where it lies well inside of the
/// input, else 0 and the largest number for logits, (1, S, 1).
struct Anchors {
  at::Tensor logits, valid;
};
Anchors anchors_of(const MapSizes& sizes);

/// The same in a graph: (S, 4) and (S, 1). `sizes`: a list of height and width for each map.
struct AnchorNodes {
  onnx::Value logits, valid;
};
AnchorNodes anchors_of(const std::vector<onnx::Value>& sizes);

/// The queries: the places whose best class is most likely, likeliest first, ties by index. There
/// are fewer if there are not enough places.
struct Selection {
  at::Tensor places;      // (N, Q) int64
  at::Tensor features;    // (N, Q, C)
  at::Tensor logits;      // (N, Q, K)
  at::Tensor box_logits;  // (N, Q, 4)
};

/// What detecting needs of them, in a graph.
struct SelectionNodes {
  onnx::Value features, box_logits;
};

class QuerySelection {
 public:
  QuerySelection(const Scope& scope, const RtDetrOptions& options, std::int64_t classes);

  /// Of `memory` (N, S, C), the maps of `sizes`.
  Selection operator()(const at::Tensor& memory, const MapSizes& sizes) const;
  SelectionNodes operator()(const onnx::Value& memory, const std::vector<onnx::Value>& sizes) const;

 private:
  std::int64_t queries_;
  Linear output_;
  LayerNorm norm_;
  Linear score_;
  Mlp box_;
};

/// The first bias of a layer of class logits: every class has probability 0.01.
double prior_bias();

/// A head of boxes: three layers, the last of which starts at 0.
Mlp box_head(const Scope& scope, std::int64_t channels);

}  // namespace rtdetr
