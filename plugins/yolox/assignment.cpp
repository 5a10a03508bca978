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

constexpr float kRadius = 2.5F;  // half the side of the centre region, in cells
constexpr float kFar = 1e5F;     // cost of a cell that is not both inside the box and near its
                                 // centre
constexpr std::size_t kBestOverlaps = 10;

struct CentreBox {
  float x, y, w, h;
};

/// Returns the IoU, computed in float like the reference.
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

/// Return the binary cross-entropy of a probability for targets 1 and 0, with the logarithm clamped
/// as in PyTorch.
float if_true(float p) { return -std::max(std::log(p), -100.0F); }
float if_false(float p) { return -std::max(std::log1p(-p), -100.0F); }

/// The assignment of one image on the host, with C candidate cells. Objects are compared one after
/// another, to limit memory to C values.
class Image {
 public:
  struct Match {
    std::int64_t cell, object;
    float iou;
  };

  Image(const CentreBox* predicted, const float* objects, const float* classes,
        std::int64_t class_count, const float* corners, const float* strides, std::int64_t cells,
        const CentreBox* truths, const std::int64_t* labels, std::int64_t count)
      : predicted_(predicted),
        classes_(classes),
        class_count_(class_count),
        corners_(corners),
        strides_(strides),
        truths_(truths),
        labels_(labels),
        count_(count) {
    for (std::int64_t cell = 0; cell < cells; ++cell)
      if (is_candidate(cell)) cells_.push_back(describe(cell, sigmoid(objects[cell])));
    costs_.resize(cells_.size());
    overlaps_.resize(cells_.size());
  }

  /// Returns the foreground cells in order, with their objects.
  std::vector<Match> matches() {
    for (std::int64_t g = 0; g < count_; ++g) {
      compare(g);
      for (std::size_t c = 0; c < cells_.size(); ++c)
        if (g == 0 || costs_[c] < cells_[c].least_cost) {
          cells_[c].least_cost = costs_[c];
          cells_[c].cheapest = {cells_[c].cell, g, overlaps_[c]};
        }
      for (const auto c : cheapest()) {
        ++cells_[c].takers;
        cells_[c].last = {cells_[c].cell, g, overlaps_[c]};
      }
    }
    std::vector<Match> result;
    for (const auto& one : cells_)
      if (one.takers > 0) result.push_back(one.takers > 1 ? one.cheapest : one.last);
    return result;
  }

 private:
  struct Candidate {
    std::int64_t cell;
    float objectness;
    double no_class;          // classification loss without the object's class: all targets 0
    float least_cost = 0;     // least cost over the objects so far
    Match cheapest{};         // match with this cost
    std::int64_t takers = 0;  // number of objects that selected this cell
    Match last{};             // match with the latest of these objects
  };

  struct Place {
    bool in_box, near;
  };
  Place place(std::int64_t cell, std::int64_t g) const {
    const float stride = strides_[cell], reach = kRadius * stride;
    const float x = corners_[2 * cell] * stride + 0.5F * stride;
    const float y = corners_[2 * cell + 1] * stride + 0.5F * stride;
    const auto& [cx, cy, w, h] = truths_[g];
    return {
        x - (cx - 0.5F * w) > 0 && cx + 0.5F * w - x > 0 && y - (cy - 0.5F * h) > 0 &&
            cy + 0.5F * h - y > 0,
        x - (cx - reach) > 0 && cx + reach - x > 0 && y - (cy - reach) > 0 && cy + reach - y > 0};
  }

  bool is_candidate(std::int64_t cell) const {
    for (std::int64_t g = 0; g < count_; ++g)
      if (const auto [in_box, near] = place(cell, g); in_box || near) return true;
    return false;
  }

  float probability(std::int64_t cell, float objectness, std::int64_t k) const {
    return std::sqrt(sigmoid(classes_[cell * class_count_ + k]) * objectness);
  }

  Candidate describe(std::int64_t cell, float objectness) const {
    double none = 0;
    for (std::int64_t k = 0; k < class_count_; ++k)
      none += if_false(probability(cell, objectness, k));
    return {cell, objectness, none};
  }

  /// Computes each candidate's cost and IoU for object `g`.
  void compare(std::int64_t g) {
    for (std::size_t c = 0; c < cells_.size(); ++c) {
      const auto& one = cells_[c];
      const auto p = probability(one.cell, one.objectness, labels_[g]);
      const float iou = overlap(truths_[g], predicted_[one.cell]);
      const auto of_class = static_cast<float>(one.no_class - if_false(p) + if_true(p));
      const auto [in_box, near] = place(one.cell, g);
      costs_[c] = of_class + 3 * -std::log(iou + 1e-8F) + (in_box && near ? 0 : kFar);
      overlaps_[c] = iou;
    }
  }

  /// Returns the candidates that the latest compared object selects.
  std::vector<std::size_t> cheapest() const {
    std::vector<float> best(std::min(kBestOverlaps, cells_.size()));
    std::partial_sort_copy(overlaps_.begin(), overlaps_.end(), best.begin(), best.end(),
                           std::greater<>());
    const auto sum = static_cast<std::size_t>(std::accumulate(best.begin(), best.end(), 0.0F));
    std::vector<std::size_t> order(cells_.size());
    std::iota(order.begin(), order.end(), 0);
    const auto wanted = std::min(std::max<std::size_t>(sum, 1), cells_.size());
    const auto end = order.begin() + static_cast<std::ptrdiff_t>(wanted);
    std::partial_sort(order.begin(), end, order.end(), [&](std::size_t a, std::size_t b) {
      return costs_[a] != costs_[b] ? costs_[a] < costs_[b] : a < b;
    });
    order.erase(end, order.end());
    return order;
  }

  const CentreBox* predicted_;
  const float* classes_;
  std::int64_t class_count_;
  const float *corners_, *strides_;
  const CentreBox* truths_;
  const std::int64_t* labels_;
  std::int64_t count_;
  std::vector<Candidate> cells_;         // (C)
  std::vector<float> costs_, overlaps_;  // (C) for the latest compared object
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
  std::vector<std::int64_t> first(counts.size());  // index of each image's first object
  std::exclusive_scan(counts.begin(), counts.end(), first.begin(), std::int64_t{0});

  std::vector<std::vector<Image::Match>> found(counts.size());
  at::parallel_for(0, std::ssize(counts), 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto n = begin; n < end; ++n) {
      const auto i = static_cast<std::size_t>(n);
      if (counts[i] == 0) continue;
      Image image(boxes_in(predicted) + n * cells, objects.const_data_ptr<float>() + n * cells,
                  classes.const_data_ptr<float>() + n * cells * class_count, class_count,
                  corners.const_data_ptr<float>(), strides.const_data_ptr<float>(), cells,
                  boxes_in(truths) + first[i], own_labels.const_data_ptr<std::int64_t>() + first[i],
                  counts[i]);
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
