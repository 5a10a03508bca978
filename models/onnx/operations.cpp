#include "millrace/models/onnx/operations.h"

namespace millrace::onnx {
namespace {

Value resized(const Value& x, const Value& sides, const Attributes& how) {
  return x.graph->add("Resize", {x, Value{}, Value{}, concat({sides_of(x, 0, 2), sides}, 0)}, how);
}

Value binary(const char* op, const Value& a, const Value& b, std::optional<Type> type = {}) {
  return a.graph->add(op, {a, b}, {}, type);
}

Value beside(const Value& a, double b) { return a.graph->scalar(b, a.type); }

}  // namespace

Value operator+(const Value& a, const Value& b) { return binary("Add", a, b); }
Value operator-(const Value& a, const Value& b) { return binary("Sub", a, b); }
Value operator*(const Value& a, const Value& b) { return binary("Mul", a, b); }
Value operator/(const Value& a, const Value& b) { return binary("Div", a, b); }
Value operator+(const Value& a, double b) { return a + beside(a, b); }
Value operator-(const Value& a, double b) { return a - beside(a, b); }
Value operator*(const Value& a, double b) { return a * beside(a, b); }
Value operator/(const Value& a, double b) { return a / beside(a, b); }
Value operator>(const Value& a, double b) {
  return binary("Greater", a, beside(a, b), Type::boolean);
}
Value operator<(const Value& a, const Value& b) { return binary("Less", a, b, Type::boolean); }
Value operator>=(const Value& a, double b) {
  return binary("GreaterOrEqual", a, beside(a, b), Type::boolean);
}
Value operator&&(const Value& a, const Value& b) { return binary("And", a, b); }
Value equal(const Value& a, const Value& b) { return binary("Equal", a, b, Type::boolean); }
Value minimum(const Value& a, const Value& b) { return binary("Min", a, b); }
Value minimum(const Value& a, double b) { return minimum(a, beside(a, b)); }
Value maximum(const Value& a, double b) { return binary("Max", a, beside(a, b)); }
Value remainder(const Value& a, const Value& b) { return binary("Mod", a, b); }
Value where(const Value& condition, const Value& a, const Value& b) {
  return condition.graph->add("Where", {condition, a, b}, {}, a.type);
}
Value where(const Value& condition, const Value& a, double b) {
  return where(condition, a, beside(a, b));
}
Value cast(const Value& x, Type type) {
  if (x.type == type) return x;
  return x.graph->add("Cast", {x}, {{"to", static_cast<std::int64_t>(type)}}, type);
}
Value apply(const char* op, const Value& x) { return x.graph->add(op, {x}); }

Value sides_of(const Value& x, std::int64_t begin, std::int64_t end) {
  return x.graph->add("Shape", {x}, {{"start", begin}, {"end", end}}, Type::i64);
}
Value side_of(const Value& x, std::int64_t axis) { return sides_of(x, axis, axis + 1); }
Value reshape(const Value& x, const Value& shape) { return x.graph->add("Reshape", {x, shape}); }
Value reshape(const Value& x, const Ints& shape) { return reshape(x, x.graph->ints(shape)); }
Value transpose(const Value& x, const Ints& order) {
  return x.graph->add("Transpose", {x}, {{"perm", order}});
}
Value unsqueeze(const Value& x, const Ints& axes) {
  return x.graph->add("Unsqueeze", {x, x.graph->ints(axes)});
}
Value squeeze(const Value& x, const Ints& axes) {
  return x.graph->add("Squeeze", {x, x.graph->ints(axes)});
}
Value concat(const std::vector<Value>& parts, std::int64_t axis) {
  if (parts.size() == 1) return parts[0];
  return parts[0].graph->add("Concat", parts, {{"axis", axis}});
}
Value expand(const Value& x, const Value& shape) { return x.graph->add("Expand", {x, shape}); }
Value slice(const Value& x, std::int64_t axis, std::int64_t begin, std::int64_t end) {
  auto& g = *x.graph;
  return g.add("Slice", {x, g.ints({begin}), g.ints({end}), g.ints({axis})});
}
Value filled(const Value& shape, double value, Type type) {
  return expand(shape.graph->scalar(value, type), shape);
}
Value range(const Value& count) {
  auto& g = *count.graph;
  return g.add("Range", {g.scalar(0, count.type), squeeze(count, {0}), g.scalar(1, count.type)});
}

Value upsample_nearest(const Value& x, const Value& sides) {
  return resized(x, sides,
                 {{"mode", "nearest"},
                  {"coordinate_transformation_mode", "asymmetric"},
                  {"nearest_mode", "floor"}});
}
Value upsample_bilinear(const Value& x, const Value& sides) {
  return resized(x, sides, {{"mode", "linear"}, {"coordinate_transformation_mode", "half_pixel"}});
}

Value gather(const Value& x, const Value& index, std::int64_t axis) {
  return x.graph->add("Gather", {x, index}, {{"axis", axis}});
}
Value gather_nd(const Value& x, const Value& index, std::int64_t batch) {
  return x.graph->add("GatherND", {x, index}, {{"batch_dims", batch}});
}
Value scatter_nd(const Value& x, const Value& index, const Value& updates) {
  return x.graph->add("ScatterND", {x, index, updates});
}
Value places_of(const Value& condition) {
  return transpose(condition.graph->add("NonZero", {condition}, {}, Type::i64), {1, 0});
}
std::pair<Value, Value> top_k(const Value& x, const Value& count) {
  const auto both =
      x.graph->add_several("TopK", {x, count}, {{"axis", std::int64_t{-1}}}, {x.type, Type::i64});
  return {both[0], both[1]};
}

}  // namespace millrace::onnx
