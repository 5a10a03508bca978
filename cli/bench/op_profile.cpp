#include "millrace/cli/bench/op_profile.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <ranges>
#include <string_view>
#include <utility>

namespace millrace::cli {
namespace {

/// Parts of operator names for each kind, in the order in which they are tried.
const std::vector<std::pair<std::string_view, std::vector<std::string_view>>> kKinds = {
    {"ROIAlign", {"roi_align", "RoiAlign"}},
    {"proposals, NMS", {"proposals", "nms"}},
    {"matching", {"match"}},
    {"mask targets", {"mask_targets"}},
    {"normalisation", {"batch_norm", "group_norm"}},
    {"optimizer", {"sgd", "_foreach"}},
    {"convolution", {"conv", "Conv", "winograd"}},
    {"matrix product", {"mm", "linear"}},
    {"activation", {"relu", "threshold", "sigmoid", "softmax"}},
    {"pooling, upsampling", {"pool", "upsample"}},
    {"losses", {"loss", "entropy"}},
    {"copies", {"copy", "clone", "contiguous", "_to", "cat"}},
    {"gather, scatter", {"index"}},
    {"filling", {"fill", "zero"}},
    {"sums", {"sum"}},
    {"arithmetic", {"add", "mul", "div", "sub"}},
};

std::string_view kind_of(std::string_view name) {
  for (const auto& [kind, parts] : kKinds)
    for (const auto part : parts)
      if (name.find(part) != name.npos) return kind;
  return "other operators";
}

/// Returns times summed by the result of `name_of`, slowest first.
std::vector<OpTime> summed(const std::unordered_map<std::string, OpTime>& times,
                           std::string_view (*name_of)(std::string_view)) {
  std::map<std::string_view, OpTime> sums;
  for (const auto& [name, time] : times) {
    auto& sum = sums[name_of(name)];
    sum.name = name_of(name);
    sum.seconds += time.seconds;
    sum.calls += time.calls;
    sum.work += time.work;
  }
  const auto all = sums | std::views::values;
  std::vector<OpTime> sorted(all.begin(), all.end());
  std::ranges::sort(sorted, std::greater<>(), &OpTime::seconds);
  return sorted;
}

}  // namespace

void OpProfile::add_step() {
  struct Ended {
    Clock::time_point begin;
    double seconds;
  };
  std::map<std::uint64_t, std::vector<Ended>> by_thread;  // a later span may contain them
  const auto thread = OpTrace::this_thread();
  for (const auto& span : trace_.take()) {
    if (one_thread_ && span.thread != thread) continue;
    auto& ended = by_thread[span.thread];
    const double whole = std::chrono::duration<double>(span.end - span.begin).count();
    double inside = 0;  // time of the operators that it called
    for (; !ended.empty() && ended.back().begin >= span.begin; ended.pop_back())
      inside += ended.back().seconds;
    ended.push_back({span.begin, whole});
    auto& time = times_[span.name];
    time.seconds += whole - inside;
    time.calls += 1;
    time.work += span.work;
  }
}

std::vector<OpTime> OpProfile::operators() const {
  return summed(times_, [](std::string_view name) { return name; });
}

std::vector<OpTime> OpProfile::kinds() const { return summed(times_, kind_of); }

}  // namespace millrace::cli
