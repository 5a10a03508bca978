#include "deformable_attention.h"

#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <array>
#include <cmath>
#include <stdexcept>

#include <millrace/models/onnx/operations.h>

// Compiled for AVX2 with FMA and for any x86-64, like Millrace's own operators; the loader selects
// one.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define RTDETR_SIMD [[gnu::target_clones("arch=x86-64-v3", "default")]]
#else
#define RTDETR_SIMD
#endif

namespace millrace::rtdetr {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// The four pixels around a sampling point: their rows in the values, their bilinear weights, and
/// the derivatives of these by x and y, in pixels. A pixel beyond the border has row -1.
template <typename T>
struct Corners {
  std::array<std::int64_t, 4> row;
  std::array<T, 4> share, along_x, along_y;
};

template <typename T>
[[gnu::always_inline]] inline Corners<T> corners_of(T x, T y, std::int64_t height,
                                                    std::int64_t width) {
  const T across = x * static_cast<T>(width) - T(0.5), down = y * static_cast<T>(height) - T(0.5);
  Corners<T> corners{{-1, -1, -1, -1}, {}, {}, {}};
  // Also false for NaN and for values beyond the integer range.
  if (!(across > -1 && down > -1 && across < static_cast<T>(width) &&
        down < static_cast<T>(height)))
    return corners;
  const T left = std::floor(across), top = std::floor(down);
  const T right_share = across - left, low_share = down - top;
  const auto column = static_cast<std::int64_t>(left), line = static_cast<std::int64_t>(top);
  for (std::size_t c = 0; c < 4; ++c) {
    const bool is_right = c % 2 == 1, is_low = c >= 2;
    const auto at_x = column + is_right, at_y = line + is_low;
    if (at_x < 0 || at_x >= width || at_y < 0 || at_y >= height) continue;
    const T by_x = is_right ? right_share : 1 - right_share,
            by_y = is_low ? low_share : 1 - low_share;
    corners.row[c] = at_y * width + at_x;
    corners.share[c] = by_x * by_y;
    corners.along_x[c] = is_right ? by_y : -by_y;
    corners.along_y[c] = is_low ? by_x : -by_x;
  }
  return corners;
}

template <typename T>
struct Lanes {
  using Vector [[gnu::vector_size(32), gnu::aligned(alignof(T)), gnu::may_alias]] = T;
  static constexpr auto kCount = static_cast<std::int64_t>(sizeof(Vector) / sizeof(T));
};

/// Computes to += factor * from.
template <typename T>
[[gnu::always_inline]] inline void add_scaled(T factor, const T* from, std::int64_t count, T* to) {
  using Vector = typename Lanes<T>::Vector;
  constexpr auto kCount = Lanes<T>::kCount;
  std::int64_t i = 0;
  for (; i + kCount <= count; i += kCount)
    *reinterpret_cast<Vector*>(to + i) += factor * *reinterpret_cast<const Vector*>(from + i);
  for (; i < count; ++i) to[i] += factor * from[i];
}

template <typename T>
[[gnu::always_inline]] inline T dot(const T* a, const T* b, std::int64_t count) {
  using Vector = typename Lanes<T>::Vector;
  constexpr auto kCount = Lanes<T>::kCount;
  Vector lanes = {};
  std::int64_t i = 0;
  for (; i + kCount <= count; i += kCount)
    lanes += *reinterpret_cast<const Vector*>(a + i) * *reinterpret_cast<const Vector*>(b + i);
  T sum = 0;
  for (std::int64_t l = 0; l < kCount; ++l) sum += lanes[l];
  for (; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

/// The sizes of the problem, as in the header.
struct Shape {
  std::int64_t images, places, heads, channels, queries, maps, points;
  std::vector<std::int64_t> heights, widths, starts;  // (L) sizes, and each map's first position

  std::int64_t width() const { return heads * channels; }  // values per position, and per query
};

/// The inputs; all pointers are to contiguous tensors.
template <typename T>
struct Inputs {
  const T *values, *locations, *weights;
};

/// Computes the output of one query of one image.
template <typename T>
[[gnu::always_inline]] inline void read_query(const Inputs<T>& in, const Shape& s,
                                              std::int64_t image, std::int64_t query, T* out) {
  const auto* values = in.values + image * s.places * s.width();
  auto sample = (image * s.queries + query) * s.heads * s.maps * s.points;
  for (std::int64_t head = 0; head < s.heads; ++head, out += s.channels)
    for (std::int64_t map = 0; map < s.maps; ++map) {
      const auto l = static_cast<std::size_t>(map);
      const auto* of_map = values + s.starts[l] * s.width() + head * s.channels;
      for (std::int64_t point = 0; point < s.points; ++point, ++sample) {
        const auto corners = corners_of(in.locations[2 * sample], in.locations[2 * sample + 1],
                                        s.heights[l], s.widths[l]);
        for (std::size_t c = 0; c < 4; ++c)
          if (corners.row[c] >= 0)
            add_scaled(in.weights[sample] * corners.share[c], of_map + corners.row[c] * s.width(),
                       s.channels, out);
      }
    }
}

RTDETR_SIMD void read(const Inputs<float>& in, const Shape& s, std::int64_t image,
                      std::int64_t query, float* out) {
  read_query(in, s, image, query, out);
}
RTDETR_SIMD void read(const Inputs<double>& in, const Shape& s, std::int64_t image,
                      std::int64_t query, double* out) {
  read_query(in, s, image, query, out);
}

/// Gradients of the three inputs.
template <typename T>
struct Gradients {
  T *values, *locations, *weights;
};

/// Computes the gradients of all queries of one head of one image, in order. No other head or image
/// adds to the same values. `out` is the gradient of the output.
template <typename T>
[[gnu::always_inline]] inline void spread_head(const Inputs<T>& in, const T* out, const Shape& s,
                                               std::int64_t image, std::int64_t head,
                                               const Gradients<T>& to) {
  for (std::int64_t query = 0; query < s.queries; ++query) {
    const auto row = image * s.queries + query;
    const auto* above = out + row * s.width() + head * s.channels;
    auto sample = (row * s.heads + head) * s.maps * s.points;
    for (std::int64_t map = 0; map < s.maps; ++map) {
      const auto l = static_cast<std::size_t>(map);
      const auto first = (image * s.places + s.starts[l]) * s.width() + head * s.channels;
      for (std::int64_t point = 0; point < s.points; ++point, ++sample) {
        const auto corners = corners_of(in.locations[2 * sample], in.locations[2 * sample + 1],
                                        s.heights[l], s.widths[l]);
        const T weight = in.weights[sample];
        T by_weight = 0, by_x = 0, by_y = 0;
        for (std::size_t c = 0; c < 4; ++c) {
          if (corners.row[c] < 0) continue;
          const auto place = first + corners.row[c] * s.width();
          const T seen = dot(above, in.values + place, s.channels);
          by_weight += corners.share[c] * seen;
          by_x += corners.along_x[c] * seen;
          by_y += corners.along_y[c] * seen;
          add_scaled(weight * corners.share[c], above, s.channels, to.values + place);
        }
        to.weights[sample] = by_weight;
        to.locations[2 * sample] = weight * by_x * static_cast<T>(s.widths[l]);
        to.locations[2 * sample + 1] = weight * by_y * static_cast<T>(s.heights[l]);
      }
    }
  }
}

RTDETR_SIMD void spread(const Inputs<float>& in, const float* out, const Shape& s,
                        std::int64_t image, std::int64_t head, const Gradients<float>& to) {
  spread_head(in, out, s, image, head, to);
}
RTDETR_SIMD void spread(const Inputs<double>& in, const double* out, const Shape& s,
                        std::int64_t image, std::int64_t head, const Gradients<double>& to) {
  spread_head(in, out, s, image, head, to);
}

Shape shape_of(const at::Tensor& values, at::IntArrayRef sides, const at::Tensor& locations) {
  Shape shape{.images = values.size(0),
              .places = values.size(1),
              .heads = values.size(2),
              .channels = values.size(3),
              .queries = locations.size(1),
              .maps = locations.size(3),
              .points = locations.size(4),
              .heights = {},
              .widths = {},
              .starts = {}};
  std::int64_t start = 0;
  for (std::size_t i = 0; i < sides.size(); i += 2) {
    shape.heights.push_back(sides[i]);
    shape.widths.push_back(sides[i + 1]);
    shape.starts.push_back(start);
    start += sides[i] * sides[i + 1];
  }
  return shape;
}

template <typename T>
Inputs<T> inputs_of(const at::Tensor& values, const at::Tensor& locations,
                    const at::Tensor& weights) {
  return {values.const_data_ptr<T>(), locations.const_data_ptr<T>(), weights.const_data_ptr<T>()};
}

template <typename T>
at::Tensor forward_of(const at::Tensor& values, const at::Tensor& locations,
                      const at::Tensor& weights, const Shape& s) {
  auto output = at::zeros({s.images, s.queries, s.width()}, values.options());
  const auto in = inputs_of<T>(values, locations, weights);
  auto* const out = output.mutable_data_ptr<T>();
  at::parallel_for(0, s.images * s.queries, 8, [&](std::int64_t begin, std::int64_t end) {
    for (auto row = begin; row < end; ++row)
      read(in, s, row / s.queries, row % s.queries, out + row * s.width());
  });
  return output;
}

template <typename T>
variable_list backward_of(const at::Tensor& values, const at::Tensor& locations,
                          const at::Tensor& weights, const at::Tensor& gradient, const Shape& s) {
  variable_list result{at::zeros_like(values), at::empty_like(locations), at::empty_like(weights)};
  const auto in = inputs_of<T>(values, locations, weights);
  const Gradients<T> to{result[0].mutable_data_ptr<T>(), result[1].mutable_data_ptr<T>(),
                        result[2].mutable_data_ptr<T>()};
  const auto* const out = gradient.const_data_ptr<T>();
  at::parallel_for(0, s.images * s.heads, 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = begin; i < end; ++i) spread(in, out, s, i / s.heads, i % s.heads, to);
  });
  return result;
}

class DeformableAttention : public torch::autograd::Function<DeformableAttention> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& values,
                            const at::Tensor& locations, const at::Tensor& weights,
                            const std::vector<std::int64_t>& sides) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    context->save_for_backward({values, locations, weights});
    context->saved_data["sides"] = sides;
    const auto shape = shape_of(values, sides, locations);
    return values.scalar_type() == at::kDouble
               ? forward_of<double>(values, locations, weights, shape)
               : forward_of<float>(values, locations, weights, shape);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto sides = context->saved_data["sides"].toIntVector();
    const auto shape = shape_of(saved[0], sides, saved[1]);
    const auto gradient = gradients[0].contiguous();
    auto result = saved[0].scalar_type() == at::kDouble
                      ? backward_of<double>(saved[0], saved[1], saved[2], gradient, shape)
                      : backward_of<float>(saved[0], saved[1], saved[2], gradient, shape);
    result.emplace_back();  // no gradient for `sides`
    return result;
  }
};

}  // namespace

at::Tensor deformable_attention(const at::Tensor& values, const MapSizes& sizes,
                                const at::Tensor& locations, const at::Tensor& weights) {
  std::vector<std::int64_t> sides;
  std::int64_t places = 0;
  for (const auto& [height, width] : sizes) {
    sides.insert(sides.end(), {height, width});
    places += height * width;
  }
  if (values.dim() != 4 || locations.dim() != 6 || weights.dim() != 5)
    throw std::invalid_argument(
        "deformable_attention: expected values (N, S, M, D), locations (N, Q, M, L, P, 2) and "
        "weights (N, Q, M, L, P)");
  if (values.size(1) != places || locations.size(3) != std::ssize(sizes) ||
      locations.size(0) != values.size(0) || locations.size(2) != values.size(2) ||
      locations.size(5) != 2 || weights.sizes() != locations.sizes().slice(0, 5))
    throw std::invalid_argument(
        "deformable_attention: values, locations, weights and map sizes differ in images, "
        "positions, heads or points");
  if (!values.is_cpu())
    throw std::invalid_argument("deformable_attention: only the CPU is supported");
  const auto type = values.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  return DeformableAttention::apply(values.to(type).contiguous(), locations.to(type).contiguous(),
                                    weights.to(type).contiguous(), sides);
}

onnx::Value deformable_attention(const onnx::Value& values, const std::vector<onnx::Value>& sizes,
                                 const onnx::Value& locations, const onnx::Value& weights) {
  auto& g = *values.graph;
  const auto place = g.in("deformable_attention");
  const auto all = g.ints({-1});
  std::vector<onnx::Value> counts;
  for (const auto& size : sizes)
    counts.push_back(onnx::slice(size, 0, 0, 1) * onnx::slice(size, 0, 1, 2));
  const auto maps = g.add_several(  // (N, M, D, H W)
      "Split", {onnx::transpose(values, {0, 2, 3, 1}), onnx::concat(counts, 0)},
      {{"axis", std::int64_t{3}}}, std::vector(sizes.size(), values.type));
  const auto points = onnx::transpose(locations, {3, 0, 2, 1, 4, 5}) * 2 - 1;  // in -1 .. 1
  const auto shares = onnx::transpose(weights, {3, 0, 2, 1, 4});
  onnx::Value sum;  // (N M, D, Q)
  for (std::size_t l = 0; l < sizes.size(); ++l) {
    const auto level = g.scalar(static_cast<double>(l), onnx::Type::i64);
    const auto grid = onnx::gather(points, level, 0);   // (N, M, Q, P, 2)
    const auto share = onnx::gather(shares, level, 0);  // (N, M, Q, P)
    const auto map =
        onnx::reshape(maps[l], onnx::concat({all, onnx::side_of(values, 3), sizes[l]}, 0));
    const auto read = g.add(
        "GridSample",
        {map, onnx::reshape(grid, onnx::concat({all, onnx::sides_of(grid, 2, 5)}, 0))},
        {{"mode", "bilinear"}, {"padding_mode", "zeros"}, {"align_corners", std::int64_t{0}}});
    const auto weighted =
        read *
        onnx::reshape(share, onnx::concat({all, g.ints({1}), onnx::sides_of(share, 2, 4)}, 0));
    const auto own = g.add("ReduceSum", {weighted, g.ints({3})}, {{"keepdims", std::int64_t{0}}});
    sum = sum.defined() ? sum + own : own;
  }
  return onnx::transpose(
      onnx::reshape(sum, onnx::concat({onnx::side_of(values, 0), all, onnx::side_of(sum, 2)}, 0)),
      {0, 2, 1});
}

}  // namespace millrace::rtdetr
