#include "millrace/dataflow/engine/sample_keys.h"

#include <fmt/format.h>

#include <exception>
#include <utility>

#include "millrace/base/errors.h"

namespace millrace {
namespace {

constexpr std::int32_t kUnknown = -2;

/// Returns the filters right after the first stage, whose input the source can describe.
std::vector<const Map*> leading_filters(const Plan& plan) {
  std::vector<const Map*> filters;
  if (!plan.about) return filters;
  for (std::size_t k = 1; k < plan.stages.size(); ++k) {
    const auto* map = std::get_if<Map>(&plan.stages[k].work);
    if (!map || !map->filters || !(plan.stages[k].takes == plan.about->type)) break;
    filters.push_back(map);
  }
  return filters;
}

}  // namespace

SampleKeys::SampleKeys(const Plan& plan)
    : plan_(plan), group_(plan.group()), filters_(leading_filters(plan)) {
  if (differ()) known_.assign(static_cast<std::size_t>(plan.size), kUnknown);
}

std::int64_t SampleKeys::operator()(std::int64_t sample) {
  if (!differ()) return 0;
  auto& known = known_[static_cast<std::size_t>(sample)];
  if (known == kUnknown) known = static_cast<std::int32_t>(look_up(sample));
  return known;
}

std::int64_t SampleKeys::look_up(std::int64_t sample) const {
  Message about;
  try {
    about = plan_.about->of(sample);
    for (const auto* filter : filters_) {
      Rng none{};
      about = filter->function(std::move(about), none);
      if (!about) return kUnwanted;
    }
  } catch (const std::exception&) {
    return 0;
  }
  if (groups() == 1) return 0;
  std::string why;
  try {
    const auto key = group_->key(about);
    if (key < group_->groups) return static_cast<std::int64_t>(key);
    why = fmt::format("key {} is out of range; there are {} groups", key, group_->groups);
  } catch (const std::exception& error) {
    why = error.what();
  }
  throw Error(fmt::format("sample {} cannot be grouped: {}", sample, why));
}

}  // namespace millrace
