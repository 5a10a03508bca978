// trainer bench model: measures the time of a training step or a detection on batches in memory,
// its parts, and its memory.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>

#include "millrace/base/clock.h"
#include "millrace/base/errors.h"
#include "millrace/base/process/process_usage.h"
#include "millrace/base/text.h"
#include "millrace/cli/arguments.h"
#include "millrace/cli/bench/op_profile.h"
#include "millrace/cli/bench/ready_batches.h"
#include "millrace/cli/command.h"
#include "millrace/dataflow/sources/train_data.h"
#include "millrace/models/detector/device_memory.h"
#include "millrace/trainer/device_numbers.h"
#include "millrace/trainer/run/session.h"

namespace millrace::cli {
namespace {

constexpr std::int64_t kWarmUp = 2;     // steps that are not timed
constexpr std::int64_t kBatches = 16;   // maximum number of different batches
constexpr std::size_t kOperators = 15;  // maximum number printed

struct BenchModelArguments {
  ConfigArguments config;
  std::int64_t steps = 10;
  bool inference = false, work = false, json = false;
};

/// Measures the steps after the first kWarmUp. On a device, operators are measured in the same
/// number of further steps, because profiling synchronizes after each operator.
struct Measurement {
  Measurement(at::Device on, const BenchModelArguments& arguments)
      : computes_on(on), steps(arguments.steps), counts_work(arguments.work) {}

  at::Device computes_on;
  std::int64_t steps;  // number of timed steps
  bool counts_work;    // of operators
  std::vector<double> step_s;
  double watched_s = 0;  // duration of all profiled steps
  double cpu_s = 0;      // CPU time of the process, all timed steps
  double images = 0;     // in all timed steps
  std::int64_t peak_rss_bytes = 0;
  std::optional<DeviceMemory> device;    // peak memory of the device
  std::vector<OpTime> kinds, operators;  // summed over all profiled steps
  StepMetrics first;  // losses of the first step, which identify weights and data

  /// Returns the total number of steps: for warm-up, timed, and additional profiled ones.
  std::int64_t all_steps() const { return kWarmUp + (computes_on == at::kCPU ? 1 : 2) * steps; }

  void begin() {
    // Queued work is completed before the kind of measurement changes. Between such points,
    // consecutive steps may overlap, as in training.
    if (done_ == kWarmUp || done_ == kWarmUp + steps) wait_for(computes_on);
    if (done_ == (computes_on == at::kCPU ? kWarmUp : kWarmUp + steps))
      profile_ = std::make_unique<OpProfile>(computes_on, counts_work);
    start_cpu_ = cpu_seconds();
    start_ = Clock::now();
  }
  void end(std::size_t count) {
    if (done_ + 1 == kWarmUp + steps || profile_) wait_for(computes_on);
    const double took = seconds_since(start_);
    if (done_++ < kWarmUp) return;
    if (profile_) {
      watched_s += took;
      profile_->add_step();
    }
    if (done_ > kWarmUp + steps) return;
    step_s.push_back(took);
    cpu_s += cpu_seconds() - start_cpu_;
    images += static_cast<double>(count);
  }
  void stop() {
    if (profile_) {
      kinds = profile_->kinds();
      operators = profile_->operators();
    }
    profile_.reset();
    peak_rss_bytes = millrace::peak_rss_bytes();
  }

  double median_s() const {
    auto sorted = step_s;
    std::ranges::sort(sorted);
    const auto n = sorted.size();
    return (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
  }
  double whole_s() const { return std::accumulate(step_s.begin(), step_s.end(), 0.0); }
  double per_step(double sum) const { return sum / static_cast<double>(step_s.size()); }

 private:
  std::int64_t done_ = 0;
  Clock::time_point start_;
  double start_cpu_ = 0;
  std::unique_ptr<OpProfile> profile_;
};

/// Measures the steps of a trainer.
class TimeSteps final : public Callback {
 public:
  explicit TimeSteps(Measurement& result) : result_(result) {}

  void before_step(const TrainState& state) override {
    seen_ = state.at.images;
    result_.begin();
  }
  void after_step(const TrainState& state) override {
    result_.end(static_cast<std::size_t>(state.at.images - seen_));
    if (result_.first.empty()) result_.first = state.scalars;
  }
  void after_train(const TrainState&) override { result_.stop(); }

 private:
  Measurement& result_;
  std::int64_t seen_ = 0;
};

Measurement measure_training(const Session& session, const BenchModelArguments& arguments) {
  const auto data = open_train_data(session.recipe().data, session.recipe().sources);
  const auto detector = session.make_initial_detector(data.classes);
  Measurement result(session.device(), arguments);
  CallbackList callbacks;
  callbacks.add("time", std::make_unique<TimeSteps>(result));
  auto plan = session.plan(*detector, data, [=](const std::unique_ptr<DataFlow<Batch>>& flow) {
    return std::make_unique<ReadyBatches>(*flow, std::min(kBatches, kWarmUp + arguments.steps));
  });
  plan.train.max_steps = result.all_steps();
  plan.train.epochs = 1e9;
  Trainer(std::move(plan), std::move(callbacks)).run();
  return result;
}

Measurement measure_inference(const Session& session, const BenchModelArguments& arguments) {
  const auto& options = session.recipe().data;
  const auto validation = session.passes_over(
      open_split(options, options.val), [=](const std::unique_ptr<DataFlow<Batch>>& flow) {
        return std::make_unique<ReadyBatches>(*flow, std::min(kBatches, kWarmUp + arguments.steps));
      });
  const auto detector = session.make_initial_detector(validation.split.classes);
  const auto batches = validation.start({});
  Measurement result(session.device(), arguments);
  for (std::int64_t step = 0; step < result.all_steps(); ++step) {
    result.begin();
    const auto batch = batches->next();
    std::size_t found = 0;
    for (const auto& objects : detector->detect(batch->value)) found += objects.size();
    result.end(batch->value.size());
    if (step == 0) result.first = {{"detections", static_cast<double>(found)}};
  }
  result.stop();
  return result;
}

/// Adds the time outside operators: Millrace's own arithmetic and bookkeeping.
void add_rest(Measurement& m) {
  OpTime rest{.name = "outside operators", .seconds = m.watched_s};
  for (const auto& kind : m.kinds) rest.seconds -= kind.seconds;
  m.kinds.push_back(rest);
  std::ranges::stable_sort(m.kinds, std::greater<>(), &OpTime::seconds);
}

Json to_json(const std::vector<OpTime>& times, const Measurement& m) {
  Json list = Json::array();
  for (const auto& time : times) {
    auto& one = list.emplace_back(Json{{"name", time.name},
                                       {"step_s", m.per_step(time.seconds)},
                                       {"share", time.seconds / m.watched_s},
                                       {"calls", m.per_step(static_cast<double>(time.calls))}});
    if (!m.counts_work) continue;
    one["flops"] = m.per_step(time.work.flops);
    one["bytes"] = m.per_step(time.work.bytes);
  }
  return list;
}

Json to_json(const Measurement& m) {
  Json first = Json::object();
  for (const auto& [name, value, kind] : m.first) first[name] = value;
  Json all = {{"step_s", m.median_s()},
              {"cpu_s", m.per_step(m.cpu_s)},
              {"images_per_s", m.images / m.whole_s()},
              {"peak_rss_bytes", m.peak_rss_bytes},
              {"steps_s", m.step_s},
              {"first", std::move(first)},
              {"profile", to_json(m.kinds, m)},
              {"operators", to_json(m.operators, m)}};
  if (m.device) {
    all["peak_device_bytes"] = m.device->tensors_bytes;
    all["peak_device_reserved_bytes"] = m.device->reserved_bytes;
  }
  return all;
}

void print_table(const std::string& title, const std::vector<OpTime>& times, const Measurement& m) {
  print_formatted("\n  {:<44}{:>10}{:>9}{:>9}\n", title, "ms a step", "share", "calls");
  for (const auto& time : times)
    print_formatted("  {:<44}{:>10.2f}{:>7.1f} %{:>9.0f}\n", time.name,
                    1e3 * m.per_step(time.seconds), 100 * time.seconds / m.watched_s,
                    m.per_step(static_cast<double>(time.calls)));
}

void print_work(const Measurement& m) {
  print_formatted("\n  {:<44}{:>10}{:>10}{:>9}\n", "operator", "ms a step", "GFLOP/s", "GB/s");
  for (const auto& [name, seconds, calls, work] : m.operators)
    print_formatted("  {:<44}{:>10.2f}{:>10}{:>9.1f}\n", name, 1e3 * m.per_step(seconds),
                    work.flops > 0 ? fmt::format("{:.0f}", 1e-9 * work.flops / seconds) : "",
                    1e-9 * work.bytes / seconds);
}

int bench_model(const BenchModelArguments& arguments) {
  const Session session(arguments.config.load());
  auto m = arguments.inference ? measure_inference(session, arguments)
                               : measure_training(session, arguments);
  m.device = peak_memory(session.device());
  add_rest(m);
  if (m.operators.size() > kOperators) m.operators.resize(kOperators);
  if (arguments.json) return print(to_json(m)), kDone;
  print_formatted(
      "{}: median {:.1f} ms of {} ({:.1f} ms of CPU), {:.2f} images/s, peak memory {}\n",
      arguments.inference ? "detection" : "training step", 1e3 * m.median_s(),
      counted(m.step_s.size(), "step"), 1e3 * m.per_step(m.cpu_s), m.images / m.whole_s(),
      byte_text(m.peak_rss_bytes));
  if (m.device)
    print_formatted("peak device memory: {} in tensors, {} reserved\n",
                    byte_text(m.device->tensors_bytes), byte_text(m.device->reserved_bytes));
  print_table("kind", m.kinds, m);
  print_table("operator", m.operators, m);
  if (arguments.work) print_work(m);
  suggest_next("trainer bench dataflow {}; the slower of the two limits training",
               arguments.config.file);
  return kDone;
}

}  // namespace

void add_bench_model(CLI::App& bench, Action& action) {
  auto [command, arguments] = add_subcommand(
      bench, action, "model", "Time of a training step or a detection, by operator, and its memory",
      bench_model);
  arguments.config.add_to(command);
  command.add_option("--steps", arguments.steps, "number of timed steps, after two to warm up")
      ->capture_default_str()
      ->check(positive());
  command.add_flag(
      "--inference", arguments.inference,
      "measure detection in validation images, including run-length masks, instead of training");
  command.add_flag("--work", arguments.work,
                   "also print arithmetic and bytes of each operator; for millrace::winograd those "
                   "of direct convolution, at least 4 times its own");
  add_json_flag(command, arguments.json);
  add_examples(command, {"trainer bench model configs/maskrcnn.toml --steps 20",
                         "trainer bench model configs/maskrcnn.toml --work",
                         "trainer bench model configs/maskrcnn.toml --inference --set "
                         "data.test_batch_size=1 --json"});
}

}  // namespace millrace::cli
