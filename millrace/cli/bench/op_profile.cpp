#include "millrace/cli/bench/op_profile.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <ranges>
#include <string_view>
#include <utility>

namespace millrace::cli {
namespace {

/// Parts of names, in the order in which they are looked for.
constexpr std::array<std::pair<std::string_view, std::string_view>, 35> kKinds = {{
    {"roi_align", "ROIAlign"},
    {"RoiAlign", "ROIAlign"},
    {"proposals", "proposals, NMS"},
    {"nms", "proposals, NMS"},
    {"match", "matching"},
    {"mask_targets", "mask targets"},
    {"batch_norm", "normalisation"},
    {"group_norm", "normalisation"},
    {"sgd", "optimizer"},
    {"_foreach", "optimizer"},
    {"conv", "convolution"},
    {"Conv", "convolution"},
    {"mm", "matrix product"},
    {"linear", "matrix product"},
    {"relu", "activation"},
    {"threshold", "activation"},
    {"sigmoid", "activation"},
    {"softmax", "activation"},
    {"pool", "pooling, upsampling"},
    {"upsample", "pooling, upsampling"},
    {"loss", "losses"},
    {"entropy", "losses"},
    {"copy", "copies"},
    {"clone", "copies"},
    {"contiguous", "copies"},
    {"_to", "copies"},
    {"cat", "copies"},
    {"index", "gather, scatter"},
    {"fill", "filling"},
    {"zero", "filling"},
    {"sum", "sums"},
    {"add", "arithmetic"},
    {"mul", "arithmetic"},
    {"div", "arithmetic"},
    {"sub", "arithmetic"},
}};

std::string_view kind_of(std::string_view name) {
  for (const auto& [part, kind] : kKinds)
    if (name.find(part) != std::string_view::npos) return kind;
  return "other operators";
}

std::vector<OpTime> sorted(std::vector<OpTime> times) {
  std::ranges::sort(times, std::greater<>(), &OpTime::seconds);
  return times;
}

}  // namespace

void OpProfile::add_step() {
  struct Ended {
    Clock::time_point begin;
    double seconds;
  };
  std::vector<Ended> ended;  // and not yet known to be called by another
  const auto thread = OpTrace::this_thread();
  for (const auto& span : trace_.take()) {
    if (span.thread != thread) continue;
    const double whole = std::chrono::duration<double>(span.end - span.begin).count();
    double inside = 0;  // operators that it called
    for (; !ended.empty() && ended.back().begin >= span.begin; ended.pop_back())
      inside += ended.back().seconds;
    ended.push_back({span.begin, whole});
    auto& time = times_[span.name];
    time.name = span.name;
    time.seconds += whole - inside;
    time.calls += 1;
  }
}

std::vector<OpTime> OpProfile::operators() const {
  const auto times = times_ | std::views::values;
  return sorted({times.begin(), times.end()});
}

std::vector<OpTime> OpProfile::kinds() const {
  std::map<std::string_view, OpTime> sums;
  for (const auto& [name, time] : times_) {
    auto& sum = sums[kind_of(name)];
    sum.name = kind_of(name);
    sum.seconds += time.seconds;
    sum.calls += time.calls;
  }
  const auto times = sums | std::views::values;
  return sorted({times.begin(), times.end()});
}

}  // namespace millrace::cli
