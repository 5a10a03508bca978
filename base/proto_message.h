// Writes protocol buffer messages without a protobuf library, for TensorBoard events and ONNX
// models.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace millrace {

template <class T>
void put_little_endian(std::string& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
}

/// A message. Fields are written in the order of the calls; a second call with the same number
/// appends to a repeated field.
class ProtoMessage {
 public:
  ProtoMessage& number(int field, std::int64_t value) {
    key(field, 0);
    varint(static_cast<std::uint64_t>(value));
    return *this;
  }
  ProtoMessage& real(int field, double value) {
    key(field, 1);
    put_little_endian(bytes_, std::bit_cast<std::uint64_t>(value));
    return *this;
  }
  ProtoMessage& single(int field, float value) {
    key(field, 5);
    put_little_endian(bytes_, std::bit_cast<std::uint32_t>(value));
    return *this;
  }
  /// Writes a string or bytes field.
  ProtoMessage& text(int field, std::string_view value) {
    key(field, 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  ProtoMessage& message(int field, const ProtoMessage& value) { return text(field, value.bytes_); }
  /// Writes a packed repeated field.
  ProtoMessage& reals(int field, std::span<const double> values) {
    std::string packed;
    for (const auto value : values) put_little_endian(packed, std::bit_cast<std::uint64_t>(value));
    return text(field, packed);
  }

  const std::string& bytes() const { return bytes_; }

 private:
  void key(int field, int wire_type) {
    varint(static_cast<std::uint64_t>(field) << 3 | static_cast<std::uint64_t>(wire_type));
  }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

}  // namespace millrace
