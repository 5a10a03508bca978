#include "millrace/dataflow/detection/data_defaults.h"

#include <algorithm>
#include <utility>

namespace millrace {
namespace {

constexpr DataDefault kStageDefaults[] = {
    {"flip", "probability", "flip"},
    {"resize_shortest_edge", "short_side", "short_side"},
    {"resize_shortest_edge", "range", "short_side_range"},
    {"resize_shortest_edge", "max_side", "max_side"},
    {"resize_shortest_edge", "style", "resize_style"},
    {"group_by_aspect_ratio", "bounds", "aspect_grouping"},
    {"group_by_aspect_ratio", "buckets", "shape_buckets"},
    {"group_by_aspect_ratio", "batch_size", "batch_size"},
    {"pad", "divisor", "divisor"},
    {"pad", "shapes", "pad_shapes"},
};

constexpr DataDefault kSourceDefaults[] = {
    {"coco", "root", "root"},
    {"coco", "split", "train"},
    {"coco", "filter_empty", "filter_empty"},
    {"records", "filter_empty", "filter_empty"},
};

/// The value of a key of [data], as a stage takes it.
Config value_of(std::string_view key, DataOptions data) {
  if (key == "aspect_grouping")  // the ratios that part groups
    return {Config::Array(data.aspect_grouping ? 1 : 0, Config(1.0, {})), {}};
  Options options;
  data.describe(options);
  return Options::value(*std::ranges::find(options.entries(), key, &Options::Entry::name));
}

}  // namespace

std::span<const DataDefault> stage_defaults() { return kStageDefaults; }
std::span<const DataDefault> source_defaults() { return kSourceDefaults; }

std::string followed_key(std::span<const DataDefault> defaults, std::string_view type,
                         std::string_view option) {
  for (const auto& one : defaults)
    if (one.type == type && one.option == option) return "data." + std::string(one.key);
  return "";
}

void follow(Config& table, std::string_view option, Config value, std::string key) {
  if (const auto* own = table.find(option); own && !own->follows) return;
  value.origin = {std::move(key), 0, 0};
  value.follows = true;
  table.set(option, std::move(value));
}

void follow_data(Config& table, std::string_view type, std::span<const DataDefault> defaults,
                 const DataOptions& data) {
  for (const auto& one : defaults)
    if (one.type == type)
      follow(table, one.option, value_of(one.key, data), "data." + std::string(one.key));
}

}  // namespace millrace
