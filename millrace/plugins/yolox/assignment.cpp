#include "assignment.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <millrace/models/layers/cells.h>

#include "network.h"

namespace millrace::yolox {
namespace {

constexpr float kRadius = 2.5F;  // cells around an object's centre
constexpr float kFar = 1e5F;     // cost of a cell outside a box or far from its centre
constexpr std::size_t kBestOverlaps = 10;

struct CentreBox {
  float x, y, w, h;
};

/// As the reference computes it, in float.
float overlap(const CentreBox& a, const CentreBox& b) {
  const float left = std::max(a.x - a.w / 2, b.x - b.w / 2);
  const float top = std::max(a.y - a.h / 2, b.y - b.h / 2);
  const float right = std::min(a.x + a.w / 2, b.x + b.w / 2);
  const float bottom = std::min(a.y + a.h / 2, b.y + b.h / 2);
  if (!(left < right && top < bottom)) return 0;
  const float common = (right - left) * (bottom - top);
  return common / (a.w * a.h + b.w * b.h - common);
}

float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

/// Binary cross-entropy of a probability, its logarithm bounded as in PyTorch.
float if_true(float p) { return -std::max(std::log(p), -100.0F); }
float if_false(float p) { return -std::max(std::log1p(-p), -100.0F); }

/// One image on the host. C candidate cells, G objects.
class Image {
 public:
  Image(const CentreBox* predicted, const float* objects, const float* classes,
        std::int64_t class_count, const float* corners, const float* strides, std::int64_t cells,
        const CentreBox* truths, const std::int64_t* labels, std::int64_t count)
      : truths_(truths), count_(static_cast<std::size_t>(count)) {
    find_candidates(corners, strides, cells);
    costs_.resize(count_ * cells_.size());
    overlaps_.resize(costs_.size());
    for (std::size_t c = 0; c < cells_.size(); ++c) {
      const auto cell = cells_[c];
      const float objectness = sigmoid(objects[cell]);
      const auto* const logits = classes + cell * class_count;
      const auto probability = [&](std::int64_t k) {
        return std::sqrt(sigmoid(logits[k]) * objectness);
      };
      double none = 0;
      for (std::int64_t k = 0; k < class_count; ++k) none += if_false(probability(k));
      for (std::size_t g = 0; g < count_; ++g) {
        const auto p = probability(labels[g]);
        const auto at = g * cells_.size() + c;
        const float iou = overlap(truths_[g], predicted[cell]);
        const auto of_class = static_cast<float>(none - if_false(p) + if_true(p));
        costs_[at] = of_class + 3 * -std::log(iou + 1e-8F) + (inside_[at] ? 0 : kFar);
        overlaps_[at] = iou;
      }
    }
  }

  struct Match {
    std::int64_t cell, object;
    float iou;
  };

  /// By cell.
  std::vector<Match> matches() const {
    constexpr std::size_t kNone = SIZE_MAX;
    std::vector<std::size_t> taken_by(cells_.size(), kNone);
    std::vector<bool> disputed(cells_.size());
    for (std::size_t g = 0; g < count_; ++g)
      for (const auto c : cheapest(g)) {
        disputed[c] = taken_by[c] != kNone;
        taken_by[c] = g;
      }
    std::vector<Match> result;
    for (std::size_t c = 0; c < cells_.size(); ++c) {
      if (taken_by[c] == kNone) continue;
      const auto g = disputed[c] ? cheapest_object(c) : taken_by[c];
      result.push_back({cells_[c], static_cast<std::int64_t>(g), overlaps_[g * cells_.size() + c]});
    }
    return result;
  }

 private:
  void find_candidates(const float* corners, const float* strides, std::int64_t cells) {
    std::vector<char> both(count_);
    std::vector<char> by_cell;
    for (std::int64_t cell = 0; cell < cells; ++cell) {
      const float stride = strides[cell], reach = kRadius * stride;
      const float x = corners[2 * cell] * stride + 0.5F * stride;
      const float y = corners[2 * cell + 1] * stride + 0.5F * stride;
      bool any = false;
      for (std::size_t g = 0; g < count_; ++g) {
        const auto& [cx, cy, w, h] = truths_[g];
        const bool in_box = x - (cx - 0.5F * w) > 0 && cx + 0.5F * w - x > 0 &&
                            y - (cy - 0.5F * h) > 0 && cy + 0.5F * h - y > 0;
        const bool near = x - (cx - reach) > 0 && cx + reach - x > 0 && y - (cy - reach) > 0 &&
                          cy + reach - y > 0;
        both[g] = in_box && near;
        any = any || in_box || near;
      }
      if (!any) continue;
      cells_.push_back(cell);
      by_cell.insert(by_cell.end(), both.begin(), both.end());
    }
    inside_.resize(by_cell.size());
    for (std::size_t c = 0; c < cells_.size(); ++c)
      for (std::size_t g = 0; g < count_; ++g)
        inside_[g * cells_.size() + c] = by_cell[c * count_ + g];
  }

  /// The candidates that object `g` takes.
  std::vector<std::size_t> cheapest(std::size_t g) const {
    const auto* const cost = costs_.data() + g * cells_.size();
    const auto* const iou = overlaps_.data() + g * cells_.size();
    std::vector<float> best(std::min(kBestOverlaps, cells_.size()));
    std::partial_sort_copy(iou, iou + cells_.size(), best.begin(), best.end(), std::greater<>());
    const auto sum = static_cast<std::size_t>(std::accumulate(best.begin(), best.end(), 0.0F));
    std::vector<std::size_t> order(cells_.size());
    std::iota(order.begin(), order.end(), 0);
    const auto wanted = std::min(std::max<std::size_t>(sum, 1), cells_.size());
    const auto end = order.begin() + static_cast<std::ptrdiff_t>(wanted);
    std::partial_sort(order.begin(), end, order.end(), [&](std::size_t a, std::size_t b) {
      return cost[a] != cost[b] ? cost[a] < cost[b] : a < b;
    });
    order.erase(end, order.end());
    return order;
  }

  std::size_t cheapest_object(std::size_t c) const {
    std::size_t best = 0;
    for (std::size_t g = 1; g < count_; ++g)
      if (costs_[g * cells_.size() + c] < costs_[best * cells_.size() + c]) best = g;
    return best;
  }

  const CentreBox* truths_;
  std::size_t count_;
  std::vector<std::int64_t> cells_;      // (C) candidates
  std::vector<char> inside_;             // (G, C): in the box and near its centre
  std::vector<float> costs_, overlaps_;  // (G, C)
};

at::Tensor on_host(const at::Tensor& tensor) {
  return tensor.detach().to(at::kCPU, at::kFloat).contiguous();
}

const CentreBox* boxes_in(const at::Tensor& boxes) {
  return reinterpret_cast<const CentreBox*>(boxes.const_data_ptr<float>());
}

}  // namespace

Grid Grid::of(std::int64_t height, std::int64_t width, at::Device device) {
  std::vector<at::Tensor> corners, strides;
  for (const auto stride : kStrides) {
    corners.push_back(cells_of(height / stride, width / stride, device));
    strides.push_back(
        at::full({corners.back().size(0)}, static_cast<double>(stride), corners.back().options()));
  }
  return {at::cat(corners), at::cat(strides)};
}

at::Tensor decoded(const at::Tensor& predicted, const at::Tensor& corners,
                   const at::Tensor& strides) {
  const auto stride = strides.unsqueeze(-1);
  return at::cat(
      {(predicted.narrow(-1, 0, 2) + corners) * stride, predicted.narrow(-1, 2, 2).exp() * stride},
      -1);
}

at::Tensor by_centre(const at::Tensor& boxes) {
  const auto low = boxes.narrow(-1, 0, 2), sides = boxes.narrow(-1, 2, 2) - low;
  return at::cat({low + sides * 0.5, sides}, -1);
}

Assignment assign(const Outputs& outputs, const Grid& grid, const at::Tensor& boxes,
                  const at::Tensor& labels, const std::vector<std::int64_t>& counts) {
  const auto device = outputs.boxes.device();
  const auto predicted = on_host(outputs.boxes), objects = on_host(outputs.objects),
             classes = on_host(outputs.classes), corners = on_host(grid.corners),
             strides = on_host(grid.strides), truths = on_host(boxes);
  const auto own_labels = labels.to(at::kCPU).contiguous();
  const auto cells = predicted.size(1), class_count = classes.size(2);
  std::vector<std::int64_t> first(counts.size());  // object of each image
  std::exclusive_scan(counts.begin(), counts.end(), first.begin(), std::int64_t{0});

  std::vector<std::vector<Image::Match>> found(counts.size());
  at::parallel_for(0, std::ssize(counts), 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto n = begin; n < end; ++n) {
      const auto i = static_cast<std::size_t>(n);
      if (counts[i] == 0) continue;
      const Image image(boxes_in(predicted) + n * cells,
                        objects.const_data_ptr<float>() + n * cells,
                        classes.const_data_ptr<float>() + n * cells * class_count, class_count,
                        corners.const_data_ptr<float>(), strides.const_data_ptr<float>(), cells,
                        boxes_in(truths) + first[i],
                        own_labels.const_data_ptr<std::int64_t>() + first[i], counts[i]);
      found[i] = image.matches();
    }
  });

  std::int64_t count = 0;
  for (const auto& matches : found) count += std::ssize(matches);
  const auto rows = at::empty({count}, at::kLong), own = at::empty({count}, at::kLong),
             ious = at::empty({count}, at::kFloat);
  auto* row = rows.mutable_data_ptr<std::int64_t>();
  auto* object = own.mutable_data_ptr<std::int64_t>();
  auto* iou = ious.mutable_data_ptr<float>();
  for (std::size_t i = 0; i < found.size(); ++i)
    for (const auto& match : found[i]) {
      *row++ = static_cast<std::int64_t>(i) * cells + match.cell;
      *object++ = first[i] + match.object;
      *iou++ = match.iou;
    }
  return {rows.to(device), own.to(device), ious.to(device)};
}

}  // namespace millrace::yolox
