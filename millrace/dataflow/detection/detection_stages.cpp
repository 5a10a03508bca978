#include "millrace/dataflow/detection/detection_stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "millrace/base/errors.h"
#include "millrace/base/text.h"

namespace millrace {
namespace {

/// Keys of [data] that nothing but a stage of training looks at.
constexpr std::string_view kForStages[] = {"flip", "short_side_range", "aspect_grouping",
                                           "shape_buckets", "pad_shapes"};

Config options_of(const Config& table) {
  Config own(Config::Table{}, table.origin);
  for (const auto& [key, value] : table.table())
    if (key != "use") own.set(key, value);
  return own;
}

/// Throws where a stage works on what a later one makes, or one that is not there, unless a declared source or a
/// plug-in's stage may do its work.
void check_order(const std::vector<Stage>& stages, bool declared_sources) {
  for (auto stage = stages.begin(); stage != stages.end(); ++stage) {
    if (stage->after.empty()) continue;
    const auto maker = std::ranges::find(stages, stage->after, &Stage::name);
    const bool ours = std::all_of(stages.begin(), stage,
                                  [](const Stage& before) { return before.plugin.empty(); });
    if (maker < stage || (maker == stages.end() && (declared_sources || !ours))) continue;
    throw ConfigError(
        fmt::format("{}stage {} '{}' works on what '{}' makes: put that in front of it",
                    stage->place(), stage - stages.begin() + 1, stage->name, stage->after));
  }
}

/// Throws where batches are of another size than the rest of the training is told.
void check_batch_size(const Plan& plan, const DataOptions& data) {
  const auto group = std::ranges::find_if(plan.stages, &Stage::is_group);
  if (group == plan.stages.end() || plan.batch() == data.batch_size) return;
  throw ConfigError(
      fmt::format("{}'{}' makes batches of {}, but data.batch_size, by which the learning rate is "
                  "scaled, is {}: leave batch_size out of the stage and set data.batch_size",
                  group->place(), group->name, counted(plan.batch(), "image"), data.batch_size));
}

}  // namespace

DetectionStages& detection_stages() {
  static DetectionStages stages("stage");
  return stages;
}

void settle_stages(const DataOptions& data, const Config& data_table, std::vector<Config>& tables) {
  if (tables.empty()) return;
  std::set<std::string> followed;
  for (auto& table : tables) {
    const auto name = used_name(table, detection_stages().kind());
    const auto& entry = detection_stages().at(name, table.find("use")->origin);
    entry.check(options_of(table), data);
    for (const auto& option : entry.help())
      if (!table.find(option.name)) followed.insert(option.follows);
    entry.complete(table);
  }
  const DetectionContext context{
      .source = list<Sample>({}), .data = data, .classes = data.classes, .only_checked = true};
  Plan plan{.size = 1, .stages = build_stages(detection_stages(), tables, context)};
  plan.about = About{MessageType::of<Sample>(), {}};
  check_yields(plan, MessageType::of<Batch>());
  check_order(plan.stages, data_table.find("sources") != nullptr);
  check_batch_size(plan, data);
  for (const auto key : kForStages)
    if (!followed.contains("data." + std::string(key)))
      refuse_unused<DataOptions>(data_table, {key},
                                 "since no stage of [[data.stages]] leaves that to it");
}

}  // namespace millrace
