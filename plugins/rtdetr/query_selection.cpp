#include "query_selection.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <millrace/models/layers/cells.h>
#include <millrace/models/onnx/operations.h>

namespace millrace::rtdetr {
namespace {

constexpr double kSide = 0.05;    // anchor side on the finest map, as a fraction of the input
constexpr double kMargin = 0.01;  // distance of valid centres and sides from 0 and 1
constexpr double kInvalid = std::numeric_limits<float>::max();

/// An anchor box at each map position, as `logits` (1, S, 4), and `valid` (1, S, 1): 1 if the box
/// is inside the input by a margin, else 0 with logits of the largest float.
struct Anchors {
  at::Tensor logits, valid;
};

Anchors anchors_of(const MapSizes& sizes) {
  std::vector<at::Tensor> all;
  double side = kSide;
  for (const auto& [height, width] : sizes) {
    const auto map = at::tensor({width, height}, at::kFloat);
    const auto centres = (cells_of(height, width) + 0.5) / map;
    all.push_back(at::cat({centres, at::full_like(centres, side)}, 1));
    side *= 2;
  }
  const auto boxes = at::cat(all).unsqueeze(0);
  const auto valid = ((boxes > kMargin) & (boxes < 1 - kMargin)).all(-1, /*keepdim=*/true);
  const auto logits = (boxes / (1 - boxes)).log();
  return {at::where(valid, logits, kInvalid), valid.to(at::kFloat)};
}

/// Anchors in an ONNX graph, (S, 4) and (S, 1). `sizes`: a list of height and width for each map.
struct AnchorNodes {
  onnx::Value logits, valid;
};

AnchorNodes anchors_of(const std::vector<onnx::Value>& sizes) {
  auto& g = *sizes.front().graph;
  const auto place = g.in("anchors");
  std::vector<onnx::Value> all;
  double side = kSide;
  for (const auto& size : sizes) {
    const auto map = onnx::cast(onnx::gather(size, g.ints({1, 0}), 0), onnx::Type::f32);
    const auto centres = (cells_of(size) + 0.5) / map;
    const auto sides = onnx::filled(onnx::sides_of(centres, 0, 2), side, onnx::Type::f32);
    all.push_back(onnx::concat({centres, sides}, 1));
    side *= 2;
  }
  const auto boxes = onnx::concat(all, 0), rest = g.scalar(1, onnx::Type::f32) - boxes;
  const auto inside = boxes > kMargin && boxes < g.scalar(1 - kMargin, onnx::Type::f32);
  const auto valid =
      g.add("ReduceMin", {onnx::cast(inside, onnx::Type::f32)}, {{"axes", onnx::Ints{1}}});
  return {onnx::where(valid > 0, onnx::apply("Log", boxes / rest), kInvalid), valid};
}

}  // namespace

double prior_bias() { return -std::log((1 - 0.01) / 0.01); }

Mlp box_head(const Scope& scope, std::int64_t channels) {
  Mlp head(scope, channels, channels, 4, 3);
  const at::NoGradGuard no_grad;
  head.layers.back().weight.zero_();
  return head;
}

QuerySelection::QuerySelection(const Scope& scope, const RtDetrOptions& options,
                               std::int64_t classes)
    : queries_(options.decoder.num_queries),
      output_(glorot_linear(scope / "enc_output" / 0, options.decoder.hidden_dim,
                            options.decoder.hidden_dim)),
      norm_(scope / "enc_output" / 1, options.decoder.hidden_dim, options.norm_eps),
      score_(glorot_linear(scope / "enc_score_head", options.decoder.hidden_dim, classes,
                           prior_bias())),
      box_(box_head(scope / "enc_bbox_head", options.decoder.hidden_dim)) {
  scope.set_classes("enc_score_head", {.values = 1});
}

Selection QuerySelection::operator()(const at::Tensor& memory, const MapSizes& sizes) const {
  const auto anchors = anchors_of(sizes);
  const auto features = norm_(output_(memory * anchors.valid.to(memory.scalar_type())));
  const auto logits = score_(features).to(at::kFloat);
  const auto best = std::get<0>(logits.detach().max(2));
  const auto order = std::get<1>(at::sort(best, /*stable=*/true, 1, /*descending=*/true));
  const auto places = order.narrow(1, 0, std::min(queries_, order.size(1)));
  const auto of_places = [&](const at::Tensor& all) {  // (N, S, n) -> (N, Q, n)
    return all.gather(1, places.unsqueeze(2).expand({-1, -1, all.size(2)}));
  };
  const auto own = of_places(features);
  const auto anchor = of_places(anchors.logits.expand({memory.size(0), -1, -1}));
  return {own, of_places(logits), box_(own).to(at::kFloat) + anchor};
}

SelectionNodes QuerySelection::operator()(const onnx::Value& memory,
                                          const std::vector<onnx::Value>& sizes) const {
  auto& g = *memory.graph;
  const auto anchors = anchors_of(sizes);
  const auto features = norm_(output_(memory * anchors.valid));
  const auto best = g.add("ReduceMax", {score_(features)},
                          {{"axes", onnx::Ints{2}}, {"keepdims", std::int64_t{0}}});
  const auto count = onnx::minimum(onnx::side_of(best, 1), static_cast<double>(queries_));
  const auto places = onnx::top_k(best, count).second;
  const auto own = onnx::gather_nd(features, onnx::unsqueeze(places, {2}), 1);
  return {own, box_(own) + onnx::gather(anchors.logits, places, 0)};
}

}  // namespace millrace::rtdetr
