// ONNX operators as functions of values: those that layers use, with arithmetic written as
// arithmetic. Numbers beside a value become constants of its type.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "millrace/models/onnx/graph.h"

namespace millrace::onnx {

// Element by element, with ONNX's broadcasting (NumPy's).
Value operator+(const Value& a, const Value& b);
Value operator-(const Value& a, const Value& b);
Value operator*(const Value& a, const Value& b);
Value operator/(const Value& a, const Value& b);  // of integers: towards zero
Value operator+(const Value& a, double b);
Value operator-(const Value& a, double b);
Value operator*(const Value& a, double b);
Value operator/(const Value& a, double b);
Value operator>(const Value& a, double b);
Value operator<(const Value& a, const Value& b);
Value operator>=(const Value& a, double b);
Value operator&&(const Value& a, const Value& b);
Value equal(const Value& a, const Value& b);
Value minimum(const Value& a, const Value& b);
Value minimum(const Value& a, double b);
Value maximum(const Value& a, double b);
Value remainder(const Value& a, const Value& b);
Value where(const Value& condition, const Value& a, const Value& b);
Value where(const Value& condition, const Value& a, double b);
Value cast(const Value& x, Type type);
/// Operators of one input that have no attributes: "Relu", "Sigmoid", "Exp" ...
Value apply(const char* op, const Value& x);

// Shapes.
/// One side of x as a list of one int64, and several as a list.
Value side_of(const Value& x, std::int64_t axis);
Value sides_of(const Value& x, std::int64_t begin, std::int64_t end);
Value reshape(const Value& x, const Ints& shape);  // 0: as it is, -1: what is left
Value reshape(const Value& x, const Value& shape);
Value transpose(const Value& x, const Ints& order);
Value unsqueeze(const Value& x, const Ints& axes);
Value squeeze(const Value& x, const Ints& axes);
Value concat(const std::vector<Value>& parts, std::int64_t axis);
Value expand(const Value& x, const Value& shape);
/// x[..., begin:end, ...] on an axis.
Value slice(const Value& x, std::int64_t axis, std::int64_t begin, std::int64_t end);
/// A tensor of one number.
Value filled(const Value& shape, double value, Type type);
/// 0, 1 ... count - 1, (count) of the type of `count`, which is a list of one number.
Value range(const Value& count);

/// x (N, C, H', W') at the sides (H, W), a list, no smaller than its own.
Value upsample_nearest(const Value& x, const Value& sides);
Value upsample_bilinear(const Value& x, const Value& sides);

// Choosing.
Value gather(const Value& x, const Value& index, std::int64_t axis);
/// Items of x by lists of indices in the last dimension of `index`; the first `batch` dimensions of
/// both go together.
Value gather_nd(const Value& x, const Value& index, std::int64_t batch = 0);
Value scatter_nd(const Value& x, const Value& index, const Value& updates);
/// The places of a condition's true elements in row-major order, (count, dimensions).
Value places_of(const Value& condition);
/// The `count` (a list of one) largest along the last axis, and where they were: largest first,
/// equal ones by index.
std::pair<Value, Value> top_k(const Value& x, const Value& count);

}  // namespace millrace::onnx
