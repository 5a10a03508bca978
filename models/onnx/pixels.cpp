#include "millrace/models/onnx/pixels.h"

namespace millrace::onnx {
namespace {

constexpr double kOne = 2048;  // weights of 11 bits

/// Source pixels of a resized axis: `first` and the next one, with integer weights.
struct Taps {
  Value first;                            // int64
  Value weight_of_first, weight_of_next;  // int32
};

/// Computes the taps of one axis; `from` and `to` are lists of one side. OpenCV computes the
/// position (i + 1/2) from / to - 1/2 in double and rounds it to float. This gives the same float
/// without doubles, which some runtimes compute as floats: the position in whole 1024ths, exact for
/// images of up to 16384 pixels a side, plus the small rest as a float.
Taps taps(const Value& from, const Value& to) {
  auto& g = *from.graph;
  constexpr double kParts = 1024;
  const auto divisor = to * 2;
  const auto above = (range(to) * 2 + 1) * from + to;  // (position + 1) times the divisor
  const auto whole = above / divisor;
  const auto left = (above - whole * divisor) * kParts;
  const auto parts = left / divisor;
  const auto rest =
      cast(left - parts * divisor, Type::f32) / cast(divisor, Type::f32) * (1 / kParts);
  const auto place = cast((whole - 1) * kParts + parts, Type::f32) * (1 / kParts) + rest;
  const auto first = apply("Floor", place);
  const auto part = place - first;
  const auto weight = [](const Value& w) { return cast(apply("Round", w * kOne), Type::i32); };
  return {cast(first, Type::i64), weight(g.scalar(1, Type::f32) - part), weight(part)};
}

Value clamped(const Value& index, const Value& count) {
  return minimum(maximum(index, 0), count - 1);
}

Value sum_along(const Value& x, std::int64_t axis, bool keeps) {
  auto& g = *x.graph;
  return g.add("ReduceSum", {x, g.ints({axis})}, {{"keepdims", std::int64_t{keeps}}});
}

/// Resizes pixels (A, from, 3) to (A, to, 3), int32: each is a weighted sum of neighbours on the
/// second axis, as computed by triangles() of antialiased.cpp.
Value mixed(const Value& pixels, const Value& from, const Value& to) {
  auto& g = *pixels.graph;
  constexpr double kWhole = 1 << 22;
  const auto scale = cast(from, Type::f64) / cast(to, Type::f64), reach = maximum(scale, 1);
  const auto centre = (cast(range(to), Type::f64) + 0.5) * scale;
  const auto first = cast(maximum(apply("Floor", centre - reach + 0.5), 0), Type::i64),
             end = minimum(cast(apply("Floor", centre + reach + 0.5), Type::i64), from);
  const auto count = cast(apply("Ceil", reach), Type::i64) * 2 + 1;
  const auto places = unsqueeze(first, {1}) + range(count);  // (to, count)
  const auto one = g.scalar(1, Type::f64);
  const auto distance =
      apply("Abs", (cast(places, Type::f64) - unsqueeze(centre, {1}) + 0.5) * (one / reach));
  const auto share = where(places < unsqueeze(end, {1}), maximum(one - distance, 0), 0);
  const auto weight = cast(share / sum_along(share, 1, true) * kWhole + 0.5, Type::i32);
  const auto taps = cast(gather(pixels, minimum(places, from - 1), 1), Type::i32);
  const auto sums = sum_along(taps * unsqueeze(weight, {2}), 2, false);
  return minimum((sums + kWhole / 2) / kWhole, 255);
}

}  // namespace

Value resize_antialiased(const Value& image, const Value& size) {
  auto& g = *image.graph;
  const auto place = g.in("resize");
  const auto height = side_of(image, 0), width = side_of(image, 1),
             new_height = slice(size, 0, 0, 1), new_width = slice(size, 0, 1, 2);
  const auto lost = height - new_height;
  const auto columns_first = (lost > 0) && (lost - (width - new_width) * 2 > 0);
  /// Transposes the image if columns are resized first.
  const auto turned = [&](const Value& x, const Value& rows, const Value& columns) {
    const auto i = unsqueeze(range(where(columns_first, columns, rows)), {1});
    const auto j = range(where(columns_first, rows, columns));
    return gather(reshape(x, {-1, 3}), where(columns_first, j * columns + i, i * columns + j), 0);
  };
  const auto along = where(columns_first, new_height, new_width),
             across = where(columns_first, new_width, new_height);
  const auto wide = mixed(turned(image, height, width), where(columns_first, height, width), along);
  const auto whole = transpose(
      mixed(transpose(wide, {1, 0, 2}), where(columns_first, width, height), across), {1, 0, 2});
  return cast(turned(whole, across, along), Type::u8);
}

Value resize_bilinear(const Value& image, const Value& size) {
  auto& g = *image.graph;
  const auto place = g.in("resize");
  const auto height = side_of(image, 0), width = side_of(image, 1);
  const auto rows = taps(height, slice(size, 0, 0, 1)), columns = taps(width, slice(size, 0, 1, 2));
  // Positions beyond a border use the border pixel alone.
  const auto inside = clamped(columns.first, width);
  const auto beyond = g.add(
      "Or", {columns.first < g.scalar(0, Type::i64), g.add("Not", {columns.first < width - 1})});
  const auto left =
                 unsqueeze(where(beyond, g.scalar(kOne, Type::i32), columns.weight_of_first), {1}),
             right = unsqueeze(where(beyond, g.scalar(0, Type::i32), columns.weight_of_next), {1});
  const auto widened = [&](const Value& row) {
    const auto own = gather(image, clamped(row, height), 0);
    const auto of = [&](const Value& column) { return cast(gather(own, column, 1), Type::i32); };
    return (of(inside) * left + of(clamped(inside + 1, width)) * right) / 16;
  };
  const auto share = [&](const Value& row, const Value& weight) {
    return widened(row) * unsqueeze(weight, {1, 2}) / 65536;
  };
  const auto sum =
      share(rows.first, rows.weight_of_first) + share(rows.first + 1, rows.weight_of_next);
  return cast((sum + 2) / 4, Type::u8);
}

Value mirrored(const Value& images, const Value& sizes) {
  auto& g = *images.graph;
  const auto place = g.in("mirror");
  const auto column = range(side_of(images, 2));  // (W)
  const auto width = slice(sizes, 1, 1, 2);       // (N, 1)
  const auto other = width - 1 - column;          // (N, W)
  const auto from = where(other < g.scalar(0, Type::i64), column, other);
  const auto columns = transpose(images, {0, 2, 1, 3});  // (N, W, H, 3)
  return transpose(gather_nd(columns, unsqueeze(from, {2}), 1), {0, 2, 1, 3});
}

Value resized_size(const Value& size, std::int64_t short_side, std::int64_t max_side,
                   bool torchvision) {
  auto& g = *size.graph;
  const auto place = g.in("resized_size");
  const auto sides = cast(size, Type::f64);
  const auto height = slice(sides, 0, 0, 1), width = slice(sides, 0, 1, 2);
  const auto shorter = minimum(height, width), longer = g.add("Max", {height, width});
  const auto target = g.scalar(static_cast<double>(short_side), Type::f64),
             bound = g.scalar(static_cast<double>(max_side), Type::f64);
  if (torchvision) {
    const auto scale = minimum(target / shorter, bound / longer);
    return maximum(cast(apply("Floor", sides * scale), Type::i64), 1);
  }
  const auto scale = target / shorter;
  const auto wide = height < width;
  const auto wanted =
      concat({where(wide, target, scale * height), where(wide, scale * width, target)}, 0);
  const auto longest = g.add("Max", {slice(wanted, 0, 0, 1), slice(wanted, 0, 1, 2)});
  const auto fitting = wanted * where(bound < longest, bound / longest, g.scalar(1, Type::f64));
  return maximum(cast(apply("Floor", fitting + 0.5), Type::i64), 1);
}

Value scaled_size(const Value& size, double scale) {
  if (scale == 1) return size;
  return maximum(cast(apply("Floor", cast(size, Type::f64) * scale + 0.5), Type::i64), 1);
}

}  // namespace millrace::onnx
