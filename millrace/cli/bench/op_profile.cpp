#include "millrace/cli/bench/op_profile.h"

#include "millrace/base/clock.h"

#include <ATen/record_function.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace millrace::cli {
namespace {

/// What runs now, outermost first, and what has run.
struct Recording {
  struct Open {
    Clock::time_point start;
    double inside = 0;  // seconds of the operators that it called
  };
  std::vector<Open> open;
  std::unordered_map<std::string, OpTime> done;
};

thread_local Recording recording;

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction&) {
  recording.open.push_back({Clock::now()});
  return nullptr;
}

void end(const at::RecordFunction& function, at::ObserverContext*) {
  if (recording.open.empty()) return;  // it began before the profile
  const auto [start, inside] = recording.open.back();
  recording.open.pop_back();
  const double whole = std::chrono::duration<double>(Clock::now() - start).count();
  if (!recording.open.empty()) recording.open.back().inside += whole;
  auto& entry = recording.done[function.name()];
  entry.seconds += whole - inside;
  entry.calls += 1;
}

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

OpProfile::OpProfile()
    : handle_(at::addThreadLocalCallback(at::RecordFunctionCallback(begin, end))) {
  recording = {};
}

OpProfile::~OpProfile() { at::removeCallback(handle_); }

std::vector<OpTime> OpProfile::operators() const {
  std::vector<OpTime> times;
  for (auto [name, time] : recording.done) {
    time.name = name;
    times.push_back(time);
  }
  return sorted(std::move(times));
}

std::vector<OpTime> OpProfile::kinds() const {
  std::map<std::string_view, OpTime> sums;
  for (const auto& [name, time] : recording.done) {
    const auto kind = kind_of(name);
    auto& sum = sums[kind];
    sum.name = kind;
    sum.seconds += time.seconds;
    sum.calls += time.calls;
  }
  std::vector<OpTime> times;
  for (const auto& [kind, time] : sums) times.push_back(time);
  return sorted(std::move(times));
}

}  // namespace millrace::cli
