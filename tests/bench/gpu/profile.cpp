// Profiles a training step: the kernels on the device and the calls on the host, as recorded by
// libtorch's profiler (Kineto).
#include <fmt/format.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "millrace/base/clock.h"
#include "millrace/base/errors.h"
#include "millrace/cli/bench/ready_batches.h"
#include "millrace/dataflow/sources/train_data.h"
#include "millrace/trainer/callback.h"
#include "millrace/trainer/run/session.h"
#include "millrace/trainer/train_state.h"
#include "tests/bench/gpu/tables.h"
#include "tests/gpu/on_device.h"

namespace millrace::testing {
namespace {

namespace kineto = torch::autograd::profiler;
using torch::profiler::impl::ActivityType;
using torch::profiler::impl::ProfilerConfig;
using torch::profiler::impl::ProfilerState;

constexpr std::size_t kListed = 30;  // rows per table

struct Use {
  double seconds = 0;
  std::int64_t calls = 0;
};
using Uses = std::map<std::string, Use>;

bool has(std::string_view name, std::string_view part) { return name.find(part) != name.npos; }

/// Returns the kind of a kernel: the first entry that matches a part of its name.
std::string kind_of_kernel(std::string_view name) {
  static const std::vector<std::pair<const char*, std::vector<std::string_view>>> kinds = {
      {"copies", {"Memcpy", "Memset"}},
      {"Millrace's own", {"millrace"}},
      {"optimizer", {"multi_tensor", "fused_sgd", "FusedSgd", "Fused"}},
      {"convolution", {"conv", "fprop", "dgrad", "wgrad", "cudnn", "implicit", "winograd"}},
      {"matrix product", {"gemm", "gemv", "cutlass", "nvjet", "splitK"}},
      {"sorting", {"sort", "Sort", "radix", "Radix"}},
      {"gather, scatter", {"index", "gather", "scatter", "Scatter"}},
      {"pooling, upsampling", {"pool", "upsample"}},
      {"sums, norms", {"reduce", "Reduce", "norm", "cumsum", "scan", "Scan"}},
      {"elementwise", {"elementwise", "copy", "fill", "Fill"}}};
  for (const auto& [kind, parts] : kinds)
    if (std::ranges::any_of(parts, [&](auto part) { return has(name, part); })) return kind;
  return "others";
}

/// Returns the seconds in which at least one of the spans was active.
double covered_s(std::vector<std::pair<std::uint64_t, std::uint64_t>> spans) {
  std::ranges::sort(spans);
  std::uint64_t sum = 0, until = 0;
  for (const auto& [begin, end] : spans) {
    if (end <= until) continue;
    sum += end - std::max(begin, until);
    until = end;
  }
  return static_cast<double>(sum) / 1e9;
}

/// Profiles the last steps of a short training run.
class ProfileSteps final : public Callback {
 public:
  ProfileSteps(std::int64_t first, std::int64_t last, std::set<ActivityType> what)
      : first_(first), last_(last), what_(std::move(what)) {}

  void before_step(const TrainState& state) override {
    if (state.at.step + 1 != first_) return;
    const ProfilerConfig config(ProfilerState::KINETO);
    kineto::prepareProfiler(config, what_);
    kineto::enableProfiler(config, what_, {at::RecordScope::FUNCTION});
    began_ = Clock::now();
  }
  void after_step(const TrainState& state) override {
    if (state.at.step != last_) return;
    seconds_ = seconds_since(began_);
    result_ = kineto::disableProfiler();
  }

  double seconds() const { return seconds_; }
  kineto::ProfilerResult& result() { return *result_; }

 private:
  std::int64_t first_, last_;
  std::set<ActivityType> what_;
  Clock::time_point began_;
  double seconds_ = 0;
  std::unique_ptr<kineto::ProfilerResult> result_;
};

void add_uses(Tables& tables, const std::string& table, const Uses& uses, double steps,
              double whole_s) {
  std::vector<std::pair<std::string, Use>> sorted(uses.begin(), uses.end());
  std::ranges::sort(sorted, std::greater<>(), [](const auto& one) { return one.second.seconds; });
  if (sorted.size() > kListed) sorted.resize(kListed);
  for (const auto& [name, use] : sorted)
    tables[table].push_back({{"name", name},
                             {"ms a step", 1e3 * use.seconds / steps},
                             {"share", use.seconds / whole_s},
                             {"calls a step", static_cast<double>(use.calls) / steps}});
}

/// Returns the kind of a CUDA call on the host; empty if it is not a CUDA call.
std::string call_of_host(std::string_view name) {
  if (has(name, "Synchronize")) return "waits";
  if (has(name, "Launch")) return "launches";
  if (has(name, "Memcpy") || has(name, "Memset")) return "copies and fills queued";
  if (name.starts_with("cudaMalloc") || name.starts_with("cudaFree") ||
      name.starts_with("cudaHostAlloc"))
    return "memory of the driver";
  return name.starts_with("cuda") || name.starts_with("cuLaunch") ? "other calls of CUDA" : "";
}

void add_tables(Tables& tables, const kineto::ProfilerResult& result, double whole_s,
                double steps) {
  Uses kernels, kinds, calls, waits, copies, operators;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> busy;
  const auto add = [](Uses& uses, const std::string& name, double seconds) {
    uses[name].seconds += seconds;
    uses[name].calls += 1;
  };
  for (const auto& event : result.events()) {
    const auto name = event.name();
    const auto seconds = static_cast<double>(event.durationNs()) / 1e9;
    if (event.deviceType() != c10::DeviceType::CPU) {
      busy.emplace_back(event.startNs(), event.endNs());
      add(kinds, kind_of_kernel(name), seconds);
      add(has(name, "Memcpy") || has(name, "Memset") ? copies : kernels, name, seconds);
      continue;
    }
    const auto call = call_of_host(name);
    if (call.empty())
      add(operators, name, seconds);
    else
      add(calls, call, seconds);
    if (call == "waits") add(waits, name, seconds);
  }
  const auto busy_s = covered_s(std::move(busy));
  std::int64_t launches = 0, waited = 0;
  if (const auto found = calls.find("launches"); found != calls.end())
    launches = found->second.calls;
  if (const auto found = calls.find("waits"); found != calls.end()) waited = found->second.calls;
  tables["A step"].push_back({{"ms", 1e3 * whole_s / steps},
                              {"ms the device computes or copies", 1e3 * busy_s / steps},
                              {"ms it has nothing to do", 1e3 * (whole_s - busy_s) / steps},
                              {"launches", static_cast<double>(launches) / steps},
                              {"waits of the host", static_cast<double>(waited) / steps}});
  for (const auto& [table, uses] :
       {std::pair{"The device, by kind", &kinds},
        {"Kernels", &kernels},
        {"Copies in a step", &copies},
        {"Calls of the host", &calls},
        {"Waits of the host", &waits},
        {"Operators on the host, with those that they call", &operators}})
    add_uses(tables, table, *uses, steps, whole_s);
  if (tested().on_cuda() && kernels.empty())
    throw Error("the profiler recorded no kernel; this libtorch is built without CUPTI");
}

}  // namespace

void profile_step(Tables& tables, const std::string& recipe, const std::string& trace) {
  const std::int64_t warm_up = tested().small ? 1 : 6, steps = tested().small ? 1 : 3;
  const Session session(
      resolve(load_config(recipe, std::vector<std::string>{"plugins=['" + tested().plugin + "']",
                                                           "train.device='" + tested().kind + "'",
                                                           "train.precision='bf16'"})));
  const auto data = open_train_data(session.recipe().data, session.recipe().sources);
  const auto detector = session.make_initial_detector(data.classes);
  auto plan = session.plan(*detector, data, [](const std::unique_ptr<DataFlow<Batch>>& flow) {
    return std::make_unique<cli::ReadyBatches>(*flow, tested().small ? 1 : 4);
  });
  plan.train.max_steps = warm_up + steps;
  plan.train.epochs = 1e9;
  std::set<ActivityType> what{ActivityType::CPU};
  if (tested().on_cuda()) what.insert(ActivityType::CUDA);
  CallbackList callbacks;
  auto profile = std::make_unique<ProfileSteps>(warm_up + 1, warm_up + steps, what);
  auto& recorded = *profile;
  callbacks.add("profile", std::move(profile));
  Trainer trainer(std::move(plan), std::move(callbacks));
  trainer.run();
  add_tables(tables, recorded.result(), recorded.seconds(), static_cast<double>(steps));
  if (!trace.empty()) recorded.result().save(trace);
}

}  // namespace millrace::testing
