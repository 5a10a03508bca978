#include "millrace/trainer/cluster/stragglers.h"

#include <fmt/format.h>

#include <algorithm>

#include "millrace/base/text.h"

namespace millrace {
namespace {

constexpr double kShareTold = 0.05;  // of the time

}  // namespace

std::optional<std::string> Stragglers::add(const StepAgreement& step, const Cluster& cluster,
                                           Clock::time_point now) {
  if (began_ == Clock::time_point{}) began_ = now;
  auto& lost = lost_[step.slowest];
  lost.all_s += step.slowest_s;
  lost.data_s += std::min(step.slowest_waited_s, step.slowest_s);
  if (now - began_ < every_) return std::nullopt;
  const auto seconds = std::chrono::duration<double>(now - began_).count();
  const auto longest = *std::ranges::max_element(
      lost_, {}, [](const auto& of_rank) { return of_rank.second.all_s; });
  began_ = now;
  lost_.clear();
  if (longest.second.all_s < kShareTold * seconds) return std::nullopt;
  return fmt::format("in the last {} others waited longest for {}: {}, of which {} for its data",
                     duration_text(seconds), cluster.name(longest.first),
                     duration_text(longest.second.all_s), duration_text(longest.second.data_s));
}

}  // namespace millrace
