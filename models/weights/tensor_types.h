// The names of tensor types in file formats, and the sizes of tensors in bytes.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/base/errors.h"

namespace millrace {

struct TensorType {
  at::ScalarType type;
  std::string_view safetensors;
  std::string_view numpy;  // without the byte order; empty = not in NumPy
  std::string_view torch;  // name of its storage
};

inline constexpr std::array<TensorType, 10> kTensorTypes = {
    {{at::kDouble, "F64", "f8", "torch.DoubleStorage"},
     {at::kFloat, "F32", "f4", "torch.FloatStorage"},
     {at::kHalf, "F16", "f2", "torch.HalfStorage"},
     {at::kBFloat16, "BF16", "", "torch.BFloat16Storage"},
     {at::kLong, "I64", "i8", "torch.LongStorage"},
     {at::kInt, "I32", "i4", "torch.IntStorage"},
     {at::kShort, "I16", "i2", "torch.ShortStorage"},
     {at::kChar, "I8", "i1", "torch.CharStorage"},
     {at::kByte, "U8", "u1", "torch.ByteStorage"},
     {at::kBool, "BOOL", "b1", "torch.BoolStorage"}}};

inline constexpr std::string_view kBigEndian =
    "its numbers are in big-endian order; save it on a little-endian machine";

/// Returns the type that a format calls `name`. Throws Error if it is unknown.
inline at::ScalarType type_named(std::string_view TensorType::*format, std::string_view name) {
  for (const auto& known : kTensorTypes)
    if (!name.empty() && known.*format == name) return known.type;
  throw Error("unknown type '" + std::string(name.substr(0, 40)) +
              "'; save it as fp32, fp16 or bf16");
}

/// Returns a format's name of `type`. Throws Error if the format does not have that type.
inline std::string_view name_of(std::string_view TensorType::*format, at::ScalarType type) {
  for (const auto& known : kTensorTypes)
    if (known.type == type && !(known.*format).empty()) return known.*format;
  throw Error(std::string("tensors of type ") + c10::toString(type) +
              " cannot be saved in this format");
}

/// Returns the type in which a tensor's bytes are read from a file, since a byte that is neither 0
/// nor 1 must not become a bool.
inline at::ScalarType bytes_type(at::ScalarType type) {
  return type == at::kBool ? at::kByte : type;
}

/// Returns the shape under which a file stores an array of `shape`: reversed in Fortran order, in
/// which the first dimension varies fastest.
inline std::vector<std::int64_t> stored_shape(std::vector<std::int64_t> shape, bool fortran_order) {
  if (fortran_order) std::reverse(shape.begin(), shape.end());
  return shape;
}

/// Reverts stored_shape().
inline at::Tensor in_c_order(const at::Tensor& read, bool fortran_order) {
  if (!fortran_order) return read;
  std::vector<std::int64_t> sides(static_cast<std::size_t>(read.dim()));
  std::iota(sides.rbegin(), sides.rend(), 0);
  return read.permute(sides).contiguous();
}

/// Reverts bytes_type().
inline at::Tensor of_type(const at::Tensor& read, at::ScalarType type) {
  return type == at::kBool ? read.ne(0) : read;
}

/// Returns the bytes of a tensor whose shape comes from a file; nullopt if a side is negative or
/// the product is too large for any tensor.
inline std::optional<std::uint64_t> byte_count(std::span<const std::int64_t> shape,
                                               at::ScalarType type) {
  std::int64_t bytes = static_cast<std::int64_t>(c10::elementSize(type));
  bool empty = false;
  for (const auto side : shape) {
    empty = empty || side == 0;
    if (side < 0 || __builtin_mul_overflow(bytes, side > 0 ? side : 1, &bytes)) return {};
  }
  return empty ? 0 : static_cast<std::uint64_t>(bytes);
}

}  // namespace millrace
