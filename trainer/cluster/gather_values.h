// An allgather of typed values.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <exception>
#include <msgpack.hpp>
#include <string_view>
#include <tuple>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/trainer/cluster/cluster.h"

namespace msgpack::adaptor {

/// A struct for which `members(value)` returns references to all members. It is packed as an array.
template <class T>
concept HasMembers = requires(T& value) {
  members(value);
};

template <HasMembers T>
struct pack<T> {
  template <class Stream>
  packer<Stream>& operator()(packer<Stream>& to, const T& value) const {
    return to.pack(members(const_cast<T&>(value)));
  }
};

template <HasMembers T>
struct convert<T> {
  const msgpack::object& operator()(const msgpack::object& from, T& value) const {
    auto all = members(value);
    if (from.type != type::ARRAY || from.via.array.size != std::tuple_size_v<decltype(all)>)
      throw type_error();
    const auto* next = from.via.array.ptr;
    std::apply([&](auto&... one) { ((next++)->convert(one), ...); }, all);
    return from;
  }
};

}  // namespace msgpack::adaptor

namespace millrace {

/// Returns the values of all ranks, by rank, bit for bit. T: any type that msgpack packs, or a
/// struct that HasMembers. `what` names the call in messages. Uses one exchange. Throws Error
/// naming a rank whose value has another type.
template <class T>
std::vector<T> gather_values(const Cluster& cluster, std::string_view what, const T& mine) {
  msgpack::sbuffer bytes;
  msgpack::pack(bytes, mine);
  std::vector<T> values;
  for (const auto& theirs : cluster.gather(what, {bytes.data(), bytes.size()})) try {
      values.push_back(msgpack::unpack(theirs.data(), theirs.size()).get().template as<T>());
    } catch (const std::exception&) {
      throw Error(fmt::format(
          "{} sent another type in '{}' than {}; do all ranks run the same version?",
          cluster.name(static_cast<std::int64_t>(values.size())), what, cluster.name()));
    }
  return values;
}

}  // namespace millrace
