// ONNX operators as functions of values: those that layers use, with C++ operators for arithmetic.
// Numbers become constants of the other operand's type.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "millrace/models/onnx/graph.h"

namespace millrace::onnx {

// Elementwise, with ONNX's broadcasting (NumPy's).
Value operator+(const Value& a, const Value& b);
Value operator-(const Value& a, const Value& b);
Value operator*(const Value& a, const Value& b);
Value operator/(const Value& a, const Value& b);  // integers: truncates
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
/// Applies an operator of one input without attributes: "Relu", "Sigmoid", "Exp" ...
Value apply(const char* op, const Value& x);

// Shapes.
/// Return one side of x as a list of one int64, and several sides as a list.
Value side_of(const Value& x, std::int64_t axis);
Value sides_of(const Value& x, std::int64_t begin, std::int64_t end);
Value reshape(const Value& x, const Ints& shape);  // 0 = unchanged, -1 = inferred
Value reshape(const Value& x, const Value& shape);
Value transpose(const Value& x, const Ints& order);
Value unsqueeze(const Value& x, const Ints& axes);
Value squeeze(const Value& x, const Ints& axes);
Value concat(const std::vector<Value>& parts, std::int64_t axis);
Value expand(const Value& x, const Value& shape);
/// Returns x[..., begin:end, ...] on an axis.
Value slice(const Value& x, std::int64_t axis, std::int64_t begin, std::int64_t end);
/// Returns a tensor filled with one number.
Value filled(const Value& shape, double value, Type type);
/// Returns 0, 1 ... count - 1, of the type of `count`, which is a list of one number.
Value range(const Value& count);

/// Resize x (N, C, H', W') to the sides (H, W), a list, at least its own.
Value upsample_nearest(const Value& x, const Value& sides);
Value upsample_bilinear(const Value& x, const Value& sides);

// Indexing.
Value gather(const Value& x, const Value& index, std::int64_t axis);
/// Returns items of x at the index lists in the last dimension of `index`; the first `batch`
/// dimensions of both are batch dimensions.
Value gather_nd(const Value& x, const Value& index, std::int64_t batch = 0);
Value scatter_nd(const Value& x, const Value& index, const Value& updates);
/// Returns the indices of a condition's true elements in row-major order, (count, dimensions).
Value places_of(const Value& condition);
/// Returns the `count` (a list of one) largest values along the last axis and their indices:
/// largest first, equal values by index.
std::pair<Value, Value> top_k(const Value& x, const Value& count);

}  // namespace millrace::onnx
