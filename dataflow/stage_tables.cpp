#include "millrace/dataflow/stage_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/base/options.h"
#include "millrace/base/text.h"
#include "millrace/dataflow/detection/pad.h"
#include "millrace/dataflow/stages/filter.h"
#include "millrace/dataflow/stages/geometric.h"
#include "millrace/dataflow/stages/group_by_aspect_ratio.h"
#include "millrace/dataflow/stages/ssd.h"

namespace millrace {
namespace {

constexpr std::string_view kDefaultStages[] = {
    "read",    Decode::kName, Flip::kName, ResizeShortestEdge::kName, GroupByAspectRatio::kName,
    Pad::kName};

// The stages of every flow, which evaluation and the predictor also call directly.
MILLRACE_REGISTER(register_stage<Decode>("reads and decodes the image: JPEG, PNG, TIFF or WebP"));
MILLRACE_REGISTER(register_stage<ResizeShortestEdge>(
    "resizes the image bilinearly so that its shorter side has a given length"));
MILLRACE_REGISTER(
    register_stage<Pad>("joins a group of samples into one batch, padded with zeros to one size"));

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

/// Returns the tables in execution order, without `after` and `before`. Several tables behind one
/// stage keep their order; an inserted stage may be named too. Throws ConfigError with file and
/// line if a name matches no stage or more than one, or if a table has both keys.
std::vector<Config> spliced_stages(std::span<const Config> tables) {
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
    for (const auto type : kDefaultStages) {
      auto& added = list.emplace_back();
      added.type = type;
      added.table.set("type", {std::string(type), {}});
    }
  for (const auto& [table, keys] : late) splice(list, *table, keys);
  std::vector<Config> result;
  for (auto& one : list) result.push_back(std::move(one.table));
  return result;
}

std::string used_stage(const Config& table) {
  return component_type(table, detection_stages().kind());
}

/// Returns true if a stage changes neither the size nor the sharpness of images.
bool keeps_size(std::string_view stage) {
  return stage == Flip::kName || stage == Filter::kName || stage == "cache" || stage == "print";
}

/// Limits `decode` to the pixels that the resize after it needs, if the stages between keep sizes.
void follow_resize(std::vector<Config>& tables, const DataOptions& data) {
  for (auto decode = tables.begin(); decode != tables.end(); ++decode) {
    if (used_stage(*decode) != Decode::kName) continue;
    if (const auto* own = decode->find("short_side"); own && !own->follows) continue;
    const auto next = std::find_if(decode + 1, tables.end(), [](const Config& table) {
      return !keeps_size(used_stage(table));
    });
    const auto resize = next == tables.end() ? std::nullopt : options_of<ResizeShortestEdge>(*next);
    if (!resize) continue;
    const auto enough = decode_for(*resize, data.reduced_decoding);
    follow(*decode, "short_side", {enough.short_side, {}}, "data.reduced_decoding");
    follow(*decode, "max_side", {enough.max_side, {}}, "data.reduced_decoding");
  }
}

/// Throws if a stage needs the result of a later or missing one, unless a declared source or a
/// plug-in's stage may provide that result.
void check_order(const std::vector<Stage>& stages, bool declared_sources) {
  for (auto stage = stages.begin(); stage != stages.end(); ++stage) {
    if (stage->after.empty()) continue;
    const auto maker = std::ranges::find(stages, stage->after, &Stage::name);
    const bool ours = std::all_of(stages.begin(), stage,
                                  [](const Stage& before) { return before.plugin.empty(); });
    if (maker < stage || (maker == stages.end() && (declared_sources || !ours))) continue;
    throw ConfigError(
        fmt::format("{}stage {} '{}' needs the output of '{}'; put that stage in front of it",
                    stage->place(), stage - stages.begin() + 1, stage->name, stage->after));
  }
}

/// Throws if the stages make batches of a size other than data.batch_size.
void check_batch_size(const Plan& plan, const DataOptions& data) {
  const auto group = std::ranges::find_if(plan.stages, &Stage::is_group);
  if (group == plan.stages.end() || plan.batch() == data.batch_size) return;
  throw ConfigError(
      fmt::format("{}'{}' makes batches of {}, but data.batch_size, which scales the learning "
                  "rate, is {}; leave batch_size out of the stage and set data.batch_size",
                  group->place(), group->name, counted(plan.batch(), "image"), data.batch_size));
}

/// The options that determine the shapes of batches.
struct Shaping {
  ResizeShortestEdge resize = {};
  bool zooms_before = false;  // a zoom-out precedes the resize, so aspect ratios change by rounding
  double growth = 1;          // factor of zooming out after the resize
  GroupByAspectRatio group = {};
  Pad pad = {};
  const Config* pad_table = nullptr;

  /// Returns the largest size that an image of `size` can get if its shorter side becomes `side`.
  cv::Size largest(cv::Size size, std::int64_t side) const {
    auto largest = resize.size_of(size, side);
    if (zooms_before)  // a canvas has whole pixels, so one side may be a pixel short
      for (const cv::Size canvas :
           {cv::Size(size.width + (size.width + size.height - 1) / size.height, size.height),
            cv::Size(size.width, size.height + (size.height + size.width - 1) / size.width)}) {
        const auto other = resize.size_of(canvas, side);
        largest = {std::max(largest.width, other.width), std::max(largest.height, other.height)};
      }
    return {static_cast<int>(largest.width * growth), static_cast<int>(largest.height * growth)};
  }
};

std::optional<Shaping> shaping(std::span<const Config> tables) {
  std::optional<ResizeShortestEdge> resize;
  Shaping all;
  for (const auto& table : tables) {
    const auto stage = used_stage(table);
    if (const auto zoom = options_of<ZoomOut>(table)) {
      if (zoom->probability > 0) all.growth *= zoom->max_scale;
    } else if (auto found = options_of<ResizeShortestEdge>(table)) {
      resize = std::move(found);
      all.zooms_before = std::exchange(all.growth, 1.0) > 1;
    } else if (!std::ranges::count(kDefaultStages, stage) && !keeps_size(stage) &&
               stage != "dump") {
      return std::nullopt;
    }
  }
  if (!resize) return std::nullopt;
  all.resize = *std::move(resize);
  for (const auto& table : tables) {
    if (auto found = options_of<GroupByAspectRatio>(table)) all.group = *std::move(found);
    if (auto found = options_of<Pad>(table)) {
      all.pad = *std::move(found);
      all.pad_table = &table;
    }
  }
  if (all.pad.shapes.empty()) return std::nullopt;
  return all;
}

/// Throws if resized images fit into none of the shapes.
void check_shapes(std::span<const Config> tables, const Config& data_table) {
  const auto all = shaping(tables);
  if (!all) return;
  const auto side =
      static_cast<int>(static_cast<double>(all->resize.largest_short_side()) * all->growth);
  const bool fits = std::ranges::any_of(all->pad.shapes, [&](const std::string& text) {
    const auto shape = parse_shape(text);
    return std::min(shape.width, shape.height) >= side;
  });
  const bool follows = all->pad_table->find("shapes")->follows;
  require(follows ? data_table : *all->pad_table, follows ? "pad_shapes" : "shapes", fits,
          fmt::format("contains no shape with both sides of at least {} pixels, as images of this "
                      "short_side need{}",
                      side, all->growth > 1 ? " after zoom_out enlarged them" : ""));
}

/// Throws if a key of [data] is set that only stages use but none of them follows.
void refuse_unfollowed(std::span<const Config> tables, const Config& data_table) {
  std::set<std::string> followed, of_stages;
  for (const auto& table : tables)
    for (const auto& [option, value] : table.table())
      if (value.follows) followed.insert(value.origin.source);
  for (const auto name : kDefaultStages)
    for (const auto& option : detection_stages().at(std::string(name)).help())
      of_stages.insert(option.follows);
  DataOptions data;
  const auto options = described(data);
  for (const auto& key : options.entries())
    if (key.affected == Affects::batches && of_stages.contains("data." + key.name) &&
        !followed.contains("data." + key.name))
      options.refuse_unused(data_table, {key.name}, "because no stage of [[data.stages]] uses it");
}

}  // namespace

std::optional<ResizeShortestEdge> only_resize(std::span<const Config> tables) {
  std::optional<ResizeShortestEdge> resize;
  for (const auto& table : tables) {
    if (!std::ranges::count(kDefaultStages, used_stage(table))) return std::nullopt;
    if (auto found = options_of<ResizeShortestEdge>(table)) resize = std::move(found);
  }
  return resize;
}

std::vector<Config> complete_stages(const DataOptions& data, std::span<const Config> given) {
  auto tables = spliced_stages(given);
  const auto entry_of = [](const Config& table) -> const auto& {
    return detection_stages().at(used_stage(table), table.find("type")->origin);
  };
  for (auto& table : tables)
    entry_of(table).follow(table, [&](const std::string& key) { return data_value(key, data); });
  follow_resize(tables, data);
  for (auto& table : tables) {
    const auto& entry = entry_of(table);
    entry.check(without(table, {"type", "until"}));
    entry.complete(table);
    // Options left to [data] are last in TOML text, so they are last after it is read again.
    std::ranges::stable_partition(std::get<Config::Table>(table.data),
                                  [](const auto& member) { return !member.second.follows; });
  }
  return tables;
}

void settle_stages(const DataOptions& data, const Config& data_table, std::vector<Config>& tables) {
  tables = complete_stages(data, tables);
  const DetectionContext context{
      .source = list<Sample>({}), .classes = data.classes, .only_checked = true};
  Plan plan{.size = 1, .stages = build_stages(detection_stages(), tables, context)};
  plan.about = About{MessageType::of<Sample>(), {}};
  check_yields(plan, MessageType::of<Batch>());
  check_order(plan.stages, data_table.find("sources") != nullptr);
  check_batch_size(plan, data);
  check_shapes(tables, data_table);
  refuse_unfollowed(tables, data_table);
}

void check_fit(const Source<Sample>& source, std::span<const Config> tables) {
  auto all = shaping(tables);
  if (!all) return;
  all->group.fit(source);
  std::vector<cv::Size> largest(all->group.groups());
  const auto side = *std::ranges::max_element(all->resize.short_side);
  for (std::int64_t i = 0; i < source.size(); ++i) {
    const auto sample = source.about(i);
    if (sample.width < 1) continue;  // unknown until it is decoded
    const auto size = all->largest({sample.width, sample.height}, side);
    auto& group = largest[all->group(sample)];
    if (all->group.batch_size == 1) group = {};
    group = {std::max(group.width, size.width), std::max(group.height, size.height)};
    all->pad.shape_for(group);
  }
}

}  // namespace millrace
