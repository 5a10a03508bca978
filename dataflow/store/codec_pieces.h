// Parts of the codecs of samples and batches: msgpack maps with rows of numbers in memory layout.
#pragma once

#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <msgpack.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "millrace/dataflow/detection/sample.h"

namespace millrace::codec {

static_assert(std::endian::native == std::endian::little,
              "rows of numbers are written in memory order");

constexpr std::int64_t kMostPixels = 1 << 20;  // maximum side, pixels

using Packer = msgpack::packer<msgpack::sbuffer>;

template <class T>
void pack_row(Packer& out, const T* values, std::size_t count) {
  const auto bytes = static_cast<std::uint32_t>(count * sizeof(T));
  out.pack_bin(bytes);
  out.pack_bin_body(reinterpret_cast<const char*>(values), bytes);
}
template <class T>
void pack_row(Packer& out, const std::vector<T>& values) {
  pack_row(out, values.data(), values.size());
}

template <class T>
void pack_pair(Packer& out, const char* key, T first, T second) {
  out.pack(key);
  out.pack_array(2).pack(first).pack(second);
}

/// Packs the members "boxes", "classes", "crowd" and "shapes" of a map (sample_codec.h).
constexpr std::uint32_t kObjectMembers = 4;
void pack_objects(Packer& out, const Instances& objects);

/// Thrown for invalid bytes.
struct Wrong {
  std::string why;
};

void require(bool holds, std::string_view why);

/// The members of a map by name.
class Fields {
 public:
  explicit Fields(const msgpack::object& object) {
    require(object.type == msgpack::type::MAP, "not a map");
    members_ = {object.via.map.ptr, object.via.map.size};
  }

  /// Returns the member's value, or nullptr if it is missing.
  const msgpack::object* find(std::string_view key) const {
    for (const auto& [name, value] : members_)
      if (name.type == msgpack::type::STR &&
          std::string_view(name.via.str.ptr, name.via.str.size) == key)
        return &value;
    return nullptr;
  }

  const msgpack::object& at(std::string_view key) const {
    if (const auto* value = find(key)) return *value;
    throw Wrong{fmt::format("'{}' is missing", key)};
  }

  /// Returns the value as a T; throws Wrong if it does not fit.
  template <class T>
  T value(std::string_view key) const {
    return as<T>(at(key), key);
  }

  template <class T>
  std::pair<T, T> pair(std::string_view key) const {
    const auto& object = at(key);
    if (object.type != msgpack::type::ARRAY || object.via.array.size != 2)
      throw Wrong{fmt::format("'{}' is not a pair", key)};
    return {as<T>(object.via.array.ptr[0], key), as<T>(object.via.array.ptr[1], key)};
  }

  std::string_view bytes(std::string_view key) const {
    const auto& object = at(key);
    if (object.type != msgpack::type::BIN) throw Wrong{fmt::format("'{}' is not binary", key)};
    return {object.via.bin.ptr, object.via.bin.size};
  }

  template <class T>
  std::vector<T> row(std::string_view key) const {
    return values<T>(bytes(key), key);
  }

  template <class T>
  static std::vector<T> values(std::string_view bytes, std::string_view key) {
    if (bytes.size() % sizeof(T) != 0)
      throw Wrong{fmt::format("'{}' is {} bytes, not a whole number of values", key, bytes.size())};
    std::vector<T> result(bytes.size() / sizeof(T));
    if (!bytes.empty()) std::memcpy(result.data(), bytes.data(), bytes.size());
    return result;
  }

 private:
  template <class T>
  static T as(const msgpack::object& object, std::string_view key) {
    try {
      return object.as<T>();
    } catch (const msgpack::type_error&) {
      throw Wrong{fmt::format("'{}' has a value of another kind or out of range", key)};
    }
  }

  std::span<const msgpack::object_kv> members_;
};

// These read and check members of a map and throw Wrong.

void check_schema(const Fields& fields, std::int64_t schema);
/// Reads width and height, each at least `least` pixels.
std::pair<std::int32_t, std::int32_t> read_size(const Fields& fields, std::string_view key,
                                                std::int32_t least);
/// Reads "scale", along x and y.
std::pair<float, float> read_scale(const Fields& fields);
Instances read_objects(const Fields& fields);

/// Calls `read` with the one msgpack value in `bytes`. Throws DataError with `where` and `what` if
/// the bytes are not msgpack or contain more than one value, or if `read` throws Wrong. Allocates
/// memory in proportion to the bytes.
void unpack(std::string_view bytes, const std::string& where, std::string_view what,
            const std::function<void(const msgpack::object&)>& read);

}  // namespace millrace::codec
