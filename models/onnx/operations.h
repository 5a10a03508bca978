// ONNX operators as functions of values: those that layers use, with C++ operators for arithmetic.
// Numbers become constants of the other operand's type.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "millrace/models/onnx/graph.h"

namespace millrace::onnx {

/// Applies an operator of two inputs without attributes.
inline Value binary(const char* op, const Value& a, const Value& b, std::optional<Type> type = {}) {
  return a.graph->add(op, {a, b}, {}, type);
}

/// Returns a number as a constant of the type of `a`.
inline Value beside(const Value& a, double b) { return a.graph->scalar(b, a.type); }

// Elementwise, with ONNX's broadcasting (NumPy's).
inline Value operator+(const Value& a, const Value& b) { return binary("Add", a, b); }
inline Value operator-(const Value& a, const Value& b) { return binary("Sub", a, b); }
inline Value operator*(const Value& a, const Value& b) { return binary("Mul", a, b); }
/// Truncates integers.
inline Value operator/(const Value& a, const Value& b) { return binary("Div", a, b); }
inline Value operator+(const Value& a, double b) { return a + beside(a, b); }
inline Value operator-(const Value& a, double b) { return a - beside(a, b); }
inline Value operator*(const Value& a, double b) { return a * beside(a, b); }
inline Value operator/(const Value& a, double b) { return a / beside(a, b); }
inline Value operator>(const Value& a, double b) {
  return binary("Greater", a, beside(a, b), Type::boolean);
}
inline Value operator<(const Value& a, const Value& b) {
  return binary("Less", a, b, Type::boolean);
}
inline Value operator>=(const Value& a, double b) {
  return binary("GreaterOrEqual", a, beside(a, b), Type::boolean);
}
inline Value operator&&(const Value& a, const Value& b) { return binary("And", a, b); }
inline Value equal(const Value& a, const Value& b) { return binary("Equal", a, b, Type::boolean); }
inline Value minimum(const Value& a, const Value& b) { return binary("Min", a, b); }
inline Value minimum(const Value& a, double b) { return minimum(a, beside(a, b)); }
inline Value maximum(const Value& a, double b) { return binary("Max", a, beside(a, b)); }
inline Value remainder(const Value& a, const Value& b) { return binary("Mod", a, b); }
inline Value where(const Value& condition, const Value& a, const Value& b) {
  return condition.graph->add("Where", {condition, a, b}, {}, a.type);
}
inline Value where(const Value& condition, const Value& a, double b) {
  return where(condition, a, beside(a, b));
}
inline Value cast(const Value& x, Type type) {
  if (x.type == type) return x;
  return x.graph->add("Cast", {x}, {{"to", static_cast<std::int64_t>(type)}}, type);
}
/// Applies an operator of one input without attributes: "Relu", "Sigmoid", "Exp" ...
inline Value apply(const char* op, const Value& x) { return x.graph->add(op, {x}); }

// Shapes.
/// Return several sides of x as a list of int64, and one side as a list of one.
inline Value sides_of(const Value& x, std::int64_t begin, std::int64_t end) {
  return x.graph->add("Shape", {x}, {{"start", begin}, {"end", end}}, Type::i64);
}
inline Value side_of(const Value& x, std::int64_t axis) { return sides_of(x, axis, axis + 1); }
/// In `shape`, 0 = unchanged, -1 = inferred.
inline Value reshape(const Value& x, const Value& shape) {
  return x.graph->add("Reshape", {x, shape});
}
inline Value reshape(const Value& x, const Ints& shape) { return reshape(x, x.graph->ints(shape)); }
inline Value transpose(const Value& x, const Ints& order) {
  return x.graph->add("Transpose", {x}, {{"perm", order}});
}
inline Value unsqueeze(const Value& x, const Ints& axes) {
  return x.graph->add("Unsqueeze", {x, x.graph->ints(axes)});
}
inline Value squeeze(const Value& x, const Ints& axes) {
  return x.graph->add("Squeeze", {x, x.graph->ints(axes)});
}
inline Value concat(const std::vector<Value>& parts, std::int64_t axis) {
  if (parts.size() == 1) return parts[0];
  return parts[0].graph->add("Concat", parts, {{"axis", axis}});
}
inline Value expand(const Value& x, const Value& shape) {
  return x.graph->add("Expand", {x, shape});
}
/// Returns x[..., begin:end, ...] on an axis.
inline Value slice(const Value& x, std::int64_t axis, std::int64_t begin, std::int64_t end) {
  auto& g = *x.graph;
  return g.add("Slice", {x, g.ints({begin}), g.ints({end}), g.ints({axis})});
}
/// Returns a tensor filled with one number.
inline Value filled(const Value& shape, double value, Type type) {
  return expand(shape.graph->scalar(value, type), shape);
}
/// Returns sides rounded up to multiples of `divisor`.
inline Value padded_size(const Value& size, std::int64_t divisor) {
  const auto step = static_cast<double>(divisor);
  return (size + (step - 1)) / step * step;
}
/// Returns 0, 1 ... count - 1, of the type of `count`, which is a list of one number.
inline Value range(const Value& count) {
  auto& g = *count.graph;
  return g.add("Range", {g.scalar(0, count.type), squeeze(count, {0}), g.scalar(1, count.type)});
}

/// Resizes x (N, C, H', W') to the sides (H, W), a list, with these attributes.
inline Value resized(const Value& x, const Value& sides, const Attributes& how) {
  return x.graph->add("Resize", {x, Value{}, Value{}, concat({sides_of(x, 0, 2), sides}, 0)}, how);
}
/// Resize x (N, C, H', W') to the sides (H, W), a list, at least its own.
inline Value upsample_nearest(const Value& x, const Value& sides) {
  return resized(x, sides,
                 {{"mode", "nearest"},
                  {"coordinate_transformation_mode", "asymmetric"},
                  {"nearest_mode", "floor"}});
}
inline Value upsample_bilinear(const Value& x, const Value& sides) {
  return resized(x, sides, {{"mode", "linear"}, {"coordinate_transformation_mode", "half_pixel"}});
}

// Indexing.
inline Value gather(const Value& x, const Value& index, std::int64_t axis) {
  return x.graph->add("Gather", {x, index}, {{"axis", axis}});
}
/// Returns items of x at the index lists in the last dimension of `index`; the first `batch`
/// dimensions of both are batch dimensions.
inline Value gather_nd(const Value& x, const Value& index, std::int64_t batch = 0) {
  return x.graph->add("GatherND", {x, index}, {{"batch_dims", batch}});
}
inline Value scatter_nd(const Value& x, const Value& index, const Value& updates) {
  return x.graph->add("ScatterND", {x, index, updates});
}
/// Returns the indices of a condition's true elements in row-major order, (count, dimensions).
inline Value places_of(const Value& condition) {
  return transpose(condition.graph->add("NonZero", {condition}, {}, Type::i64), {1, 0});
}
/// Returns the `count` (a list of one) largest values along the last axis and their indices:
/// largest first, equal values by index.
inline std::pair<Value, Value> top_k(const Value& x, const Value& count) {
  const auto both =
      x.graph->add_several("TopK", {x, count}, {{"axis", std::int64_t{-1}}}, {x.type, Type::i64});
  return {both[0], both[1]};
}

}  // namespace millrace::onnx
