#include "millrace/callbacks/common/stall.h"

#include <fmt/format.h>

#include <algorithm>

#include "millrace/base/text.h"

namespace millrace {
namespace {

double seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

std::string data_text(const FlowReport& report) {
  std::string text;
  for (const auto& work : report.in_work)
    text += fmt::format("\n  stage '{}' has worked on {} for {}", work.stage, work.sample,
                        duration_text(work.seconds));
  if (report.in_work.empty()) text += "\n  no stage is processing anything";
  if (report.stages.empty()) return text;
  text += "\n  waiting:";
  for (std::size_t k = 0; k + 1 < report.stages.size(); ++k)
    text += fmt::format(" {} for '{}',", report.stages[k].waiting, report.stages[k].name);
  return text + fmt::format(" {} batches ready", report.stages.back().waiting);
}

}  // namespace

bool StallWatch::sees(const Activity::Now& now, Clock::time_point at) {
  if (!looked_ || at - *looked_ > limit_ / 2) awake_ = at;
  looked_ = at;
  if (stalled_ || at - std::max(now.last_progress, awake_) < limit_) return false;
  stalled_ = now.last_progress;
  return true;
}

std::optional<Clock::duration> StallWatch::ended(const Activity::Now& now) {
  if (!stalled_ || now.last_progress == *stalled_) return std::nullopt;
  const auto length = now.last_progress - *stalled_;
  stalled_.reset();
  return length;
}

std::string stall_text(std::int64_t rank, const Activity& activity, Clock::time_point at) {
  const auto now = activity.now();
  auto text =
      fmt::format("rank {}: {}, for {}", rank, now.what, duration_text(seconds(at - now.since)));
  if (const auto data = activity.data()) text += data_text(*data);
  return text;
}

}  // namespace millrace
