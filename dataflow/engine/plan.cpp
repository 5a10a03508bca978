#include "millrace/dataflow/engine/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "millrace/base/errors.h"

namespace millrace {
namespace {

bool draws(const Stage& stage) {
  const auto* map = std::get_if<Map>(&stage.work);
  return map ? map->random : std::holds_alternative<Mix>(stage.work);
}

void check_repeats(const Plan& plan) {
  if (plan.repeats.empty()) return;
  if (std::ssize(plan.repeats) != plan.size)
    throw ConfigError(
        fmt::format("a flow of {} samples has {} repeats", plan.size, plan.repeats.size()));
  const auto bad = std::ranges::find_if_not(
      plan.repeats, [](double times) { return std::isfinite(times) && times >= 0; });
  if (bad != plan.repeats.end())
    throw ConfigError(
        fmt::format("sample {} cannot occur {} times per epoch", bad - plan.repeats.begin(), *bad));
  if (std::reduce(plan.repeats.begin(), plan.repeats.end()) < 1)
    throw ConfigError("the repeats sum to less than one sample per epoch");
}

}  // namespace

const Group* Plan::group() const {
  for (const auto& stage : stages)
    if (stage.is_group()) return &std::get<Group>(stage.work);
  return nullptr;
}

std::int64_t Plan::batch() const {
  const auto* stage = group();
  return stage ? static_cast<std::int64_t>(stage->size) : 1;
}

void check(const Plan& plan) {
  if (plan.size <= 0) throw ConfigError("a flow needs at least one sample");
  if (plan.stages.empty() || plan.stages.front().is_group())
    throw ConfigError("a flow must start with a stage that reads samples");
  check_repeats(plan);
  auto present = MessageType::of<Index>();
  std::string from = "the source";
  bool grouped = false, cached = false;
  const Stage* random = nullptr;
  for (std::size_t k = 0; k < plan.stages.size(); ++k) {
    const auto& stage = plan.stages[k];
    const auto refuse = [&](const std::string& why) {
      throw ConfigError(fmt::format("{}stage {} '{}'{}", stage.place(), k + 1, stage.name, why));
    };
    if (!(stage.takes == present))
      refuse(fmt::format(" takes {}, but {} yields {}", stage.takes.text(), from, present.text()));
    if (const auto* group = std::get_if<Group>(&stage.work)) {
      if (std::exchange(grouped, true))
        refuse(" is a second stage that groups; a flow has at most one");
      if (group->groups > 1 && !(plan.about && plan.about->type == *group->of))
        refuse(fmt::format(" groups by {}, but the source {}", group->of->text(),
                           plan.about ? "has " + plan.about->type.text()
                                      : std::string("does not describe its samples")));
    }
    if (stage.until > 0 && (stage.is_cache() || !(stage.takes == stage.yields)))
      refuse(fmt::format(" cannot end at epoch {} (until), since later stages need its output",
                         stage.until));
    if (stage.is_cache()) {
      if (std::exchange(cached, true) || grouped)
        refuse(": a flow has at most one cache, in front of the stage that groups");
      if (random)
        refuse(
            fmt::format(" would keep the random draws of '{0}', so that all epochs would be equal; "
                        "put it in front of '{0}'",
                        random->name));
    }
    if (!random && draws(stage)) random = &stage;
    present = stage.yields;
    from = fmt::format("'{}'", stage.name);
  }
}

void check_yields(const Plan& plan, const MessageType& wanted) {
  check(plan);
  const auto& last = plan.stages.back();
  if (!(last.yields == wanted))
    throw ConfigError(fmt::format("{}the last stage '{}' yields {}; the flow must end in {}",
                                  last.place(), last.name, last.yields.text(), wanted.text()));
}

}  // namespace millrace
