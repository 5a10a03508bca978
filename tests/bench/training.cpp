// Cost of a training run besides its computations: the loop of `trainer run`, with data flow, run
// folder and callbacks, compared with a bare loop of steps over the same batches in memory. Both
// start with the same weights and must end with equal weights.
//
//   bench_training configs/maskrcnn.toml train.max_steps=40 data.short_side=320 ...
//
// prints the seconds per step of both, interleaved, and the memory of the process over time.
#include <ATen/ops/equal.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <numeric>

#include "millrace/base/clock.h"
#include "millrace/base/config.h"
#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/base/process/process_usage.h"
#include "millrace/dataflow/detection_flows.h"
#include "millrace/dataflow/image/buffer_pool.h"
#include "millrace/dataflow/sources/train_data.h"
#include "millrace/models/detector/restore.h"
#include "millrace/trainer/run/run.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kWarmUp = 4;  // warm-up steps, not counted
constexpr int kRounds = 3;

/// Times between successive calls of mark(), one call per step.
struct Times {
  std::vector<double> steps;  // in seconds
  double cpu_s = 0;           // over all of these steps
  std::vector<double> resident_mib;

  void mark() {
    const auto now = Clock::now();
    const auto cpu = cpu_seconds();
    if (++marks_ > kWarmUp) {
      steps.push_back(std::chrono::duration<double>(now - last_).count());
      cpu_s += cpu - last_cpu_;
      resident_mib.push_back(static_cast<double>(rss_bytes()) / (1 << 20));
    }
    last_ = now;
    last_cpu_ = cpu;
  }

  double mean_s() const {
    return std::accumulate(steps.begin(), steps.end(), 0.0) / static_cast<double>(steps.size());
  }
  double mean_cpu_s() const { return cpu_s / static_cast<double>(steps.size()); }
  double median_s() const {
    auto sorted = steps;
    std::ranges::nth_element(sorted, sorted.begin() + std::ssize(sorted) / 2);
    return sorted[sorted.size() / 2];
  }

 private:
  std::int64_t marks_ = 0;
  Clock::time_point last_;
  double last_cpu_ = 0;
};

NamedTensors copy_of_values(const Detector& detector) {
  NamedTensors copy;
  for (const auto& [name, value] : named_values(detector)) copy.emplace_back(name, value.clone());
  return copy;
}

Times* watched = nullptr;  // set for the callback below
NamedTensors whole_weights;

/// Marks the time before each step, so that the work of all callbacks after a step is included.
struct Stopwatch final : Callback {
  void before_step(const TrainState&) override { watched->mark(); }
  void after_train(const TrainState& state) override {
    whole_weights = copy_of_values(state.model);
  }
};

MILLRACE_REGISTER(register_callback<Stopwatch>("stopwatch", "times steps"));

struct Bench {
  const Session& session;
  const Recipe& recipe = session.recipe();
  TrainData data = open_train_data(recipe.data, recipe.sources);
  std::vector<Batch> batches = {};

  std::uint64_t seed() const { return static_cast<std::uint64_t>(recipe.train.seed); }

  void make_batches() {
    const auto flow = start_train_flow(recipe.data, recipe.stages, data, seed());
    while (std::ssize(batches) < recipe.train.max_steps) {
      auto delivery = flow->next();
      if (!delivery) throw Error("too few batches in the data");
      batches.push_back(std::move(delivery->value));
    }
  }

  Times bare(NamedTensors& weights) const {
    const auto detector = session.make_initial_detector(data.classes);
    TrainingStep step(*detector, recipe.train, recipe.optimizer);
    const Schedule schedule(recipe.schedule, recipe.optimizer.scaled_lr(recipe.images_per_step()),
                            recipe.train.epochs);
    LossScale scale;
    Times times;
    std::int64_t images = 0;
    for (std::int64_t i = 0; i < std::ssize(batches); ++i) {
      times.mark();
      const auto& batch = batches[static_cast<std::size_t>(i)];
      const double progress =
          static_cast<double>(images) / static_cast<double>(data.source->size());
      step({&batch, 1}, {.seed = seed(), .step = i}, schedule.rate({progress, i, images}), scale);
      images += static_cast<std::int64_t>(batch.size());
    }
    weights = copy_of_values(*detector);
    return times;
  }

  Times whole(const fs::path& output) {
    Times times;
    watched = &times;
    run_training(session,
                 {.config_file = "bench.toml", .program = "bench_training", .output = output});
    return times;
  }
};

void print(const char* what, const Times& t) {
  fmt::print("  {:<10}{:>10.4f}{:>10.4f}{:>10.4f}\n", what, t.median_s(), t.mean_s(),
             t.mean_cpu_s());
}

int run(int argc, char** argv) {
  if (argc < 2) throw ConfigError("usage: bench_training CONFIG [K=V]...");
  const std::vector<std::string> overrides(argv + 2, argv + argc);
  auto recipe = resolve(load_config(argv[1], overrides));
  if (recipe.train.max_steps <= kWarmUp)
    throw ConfigError("train.max_steps is too small; set it to e.g. 40");
  if (recipe.optimizer.accumulate > 1)
    throw ConfigError("the bare loop needs optimizer.accumulate = 1");
  recipe.callbacks.push_back({"stopwatch", "stopwatch", Config{}});
  const Session session(std::move(recipe));
  Bench bench{.session = session};
  bench.make_batches();
  const auto output = fs::temp_directory_path() / fmt::format("bench-training-{}", ::getpid());

  fmt::print("  {:<10}{:>10}{:>10}{:>10}\n", "s a step", "median", "mean", "CPU");
  double median = 0, mean = 0, cpu = 0;
  for (int round = 0; round < kRounds; ++round) {
    NamedTensors weights;
    const auto bare = bench.bare(weights);
    const auto whole = bench.whole(output);
    print("bare", bare);
    print("whole", whole);
    median += whole.median_s() / bare.median_s() / kRounds;
    mean += whole.mean_s() / bare.mean_s() / kRounds;
    cpu += whole.mean_cpu_s() / bare.mean_cpu_s() / kRounds;
    for (std::size_t i = 0; i < weights.size(); ++i)
      if (!at::equal(weights[i].second, whole_weights.at(i).second))
        throw Error(fmt::format("final values of {} differ", weights[i].first));
    const auto& mib = whole.resident_mib;
    fmt::print(
        "  resident MiB at the first counted step, half way, at the end: {:.0f}, {:.0f}, {:.0f}\n",
        mib.front(), mib[mib.size() / 2], mib.back());
  }
  fmt::print("  {:<10}{:>9.4f}x{:>9.4f}x{:>9.4f}x\n", "whole/bare", median, mean, cpu);
  fmt::print("  both runs end with the same weights\n");
  fs::remove_all(output);
  return 0;
}

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) try {
  // libgomp reads GOMP_SPINCOUNT when it is loaded, so the program executes itself again. `trainer`
  // starts `trainer-torch` with the same value.
  if (::setenv("GOMP_SPINCOUNT", "1000", /*overwrite=*/0) == 0 && !std::getenv("BENCH_STARTED")) {
    ::setenv("BENCH_STARTED", "1", 1);
    ::execv("/proc/self/exe", argv);
  }
  millrace::start_logging();
  millrace::prepare_opencv();
  spdlog::set_level(spdlog::level::warn);
  return millrace::run(argc, argv);
} catch (const std::exception& problem) {
  fmt::print(stderr, "bench_training: {}\n", problem.what());
  return 1;
}
