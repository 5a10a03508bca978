#include "millrace/dataflow/spliced_stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/base/options.h"
#include "millrace/base/registry.h"
#include "millrace/base/text.h"
#include "millrace/dataflow/engine/pipeline.h"

namespace millrace {
namespace {

struct Placed {
  std::string type;
  Config table;
  std::string after = {};  // type that this stage was inserted after; empty = none
};

/// Returns the index of the only stage of type `name`, the value of `key` in `table`.
std::ptrdiff_t place_of(const std::vector<Placed>& list, const Config& table, const char* key,
                        const std::string& name) {
  const auto& where = table.find(key)->origin;
  std::vector<std::string> types, places;
  std::ptrdiff_t found = 0;
  for (const auto& one : list) {
    if (std::ranges::find(types, one.type) == types.end()) types.push_back(one.type);
    if (one.type != name) continue;
    found = &one - list.data();
    places.push_back(one.table.origin.text());
  }
  if (places.empty())
    throw ConfigError(fmt::format(
        "{}: {} = \"{}\" is not a stage of the list ({}){}", where.text(), key, name, joined(types),
        nearest_name(name, types).empty() ? "" : suggestion(name, types)));
  if (places.size() > 1)
    throw ConfigError(
        fmt::format("{}: {} = \"{}\" is ambiguous: the list has {} such stages ({}); name an "
                    "adjacent stage, or write out the list",
                    where.text(), key, name, places.size(), joined(places)));
  return found;
}

void splice(std::vector<Placed>& list, const Config& table, const StageKeys& keys) {
  require(table, "before", keys.after.empty() || keys.before.empty(),
          "and `after` exclude each other; set one of them");
  const bool is_after = !keys.after.empty();
  const auto& name = is_after ? keys.after : keys.before;
  auto at = place_of(list, table, is_after ? "after" : "before", name);
  if (is_after) {
    ++at;
    while (at < std::ssize(list) && list[static_cast<std::size_t>(at)].after == name) ++at;
  }
  list.insert(list.begin() + at, {keys.type, without(table, {"after", "before"}), keys.after});
}

}  // namespace

std::vector<Config> spliced_stages(std::span<const Config> tables,
                                   std::span<const std::string_view> standard) {
  std::vector<std::pair<const Config*, StageKeys>> late;
  std::vector<Placed> list;
  for (const auto& table : tables) {
    auto keys = read_part<StageKeys>(table);
    if (keys.after.empty() && keys.before.empty())
      list.push_back({std::move(keys.type), table});
    else
      late.emplace_back(&table, std::move(keys));
  }
  if (list.empty())
    for (const auto type : standard) {
      auto& added = list.emplace_back();
      added.type = type;
      added.table.set("type", {std::string(type), {}});
    }
  for (const auto& [table, keys] : late) splice(list, *table, keys);
  std::vector<Config> result;
  for (auto& one : list) result.push_back(std::move(one.table));
  return result;
}

}  // namespace millrace
