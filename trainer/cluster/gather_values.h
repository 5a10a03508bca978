// An allgather of values instead of bytes.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <exception>
#include <msgpack.hpp>
#include <string_view>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/trainer/cluster/cluster.h"

namespace millrace {

/// The values of all ranks, by rank, to the bit. T: whatever msgpack packs. `what` names the call
/// in messages. One exchange. Throws Error naming a rank whose value has another type.
template <class T>
std::vector<T> gather_values(const Cluster& cluster, std::string_view what, const T& mine) {
  msgpack::sbuffer bytes;
  msgpack::pack(bytes, mine);
  std::vector<T> values;
  for (const auto& theirs : cluster.gather(what, {bytes.data(), bytes.size()})) try {
      values.push_back(msgpack::unpack(theirs.data(), theirs.size()).get().template as<T>());
    } catch (const std::exception&) {
      throw Error(fmt::format("{} gives something else in '{}' than {}: do they run one version?",
                              cluster.name(static_cast<std::int64_t>(values.size())), what,
                              cluster.name()));
    }
  return values;
}

}  // namespace millrace
