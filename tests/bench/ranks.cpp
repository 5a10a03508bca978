// Cost of all-reducing the gradients over ranks, and the part of it that the backward pass hides.
//
//   mpirun -np 2 --bind-to none bench_ranks CONFIG train.max_steps=12 train.threads=1 ...
//
// prints the seconds of a step, of the wait after its backward pass, and of the same all-reduces
// alone. The wait is also printed as the minimum over the ranks, which excludes waiting for the
// slowest rank.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include "millrace/base/clock.h"
#include "millrace/base/config.h"
#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/base/process/process_usage.h"
#include "millrace/dataflow/image/buffer_pool.h"
#include "millrace/dataflow/sources/train_data.h"
#include "millrace/models/detector/precision.h"
#include "millrace/trainer/run/session.h"

namespace millrace {
namespace {

constexpr std::int64_t kWarmUp = 2;  // warm-up steps, not counted
constexpr int kAlone = 5;            // number of all-reduces without a step

double least(const Cluster& cluster, double mine) {
  for (const auto& theirs :
       cluster.gather("least", {reinterpret_cast<const char*>(&mine), sizeof mine})) {
    double other = 0;
    std::memcpy(&other, theirs.data(), sizeof other);
    mine = std::min(mine, other);
  }
  return mine;
}

/// Returns the seconds of the all-reduces alone.
double sums_alone(const Cluster& cluster, const Parameters& parameters, at::ScalarType type) {
  const auto sync = make_gradient_sync(at::kCPU, cluster);
  GradientBuckets buckets(parameters, *sync, type);
  double fastest = 1e9;
  for (int i = 0; i < kAlone; ++i) {
    cluster.meet("sums alone");
    const auto began = Clock::now();
    buckets.begin_group(0, /*is_last=*/true);
    buckets.finish();
    fastest = std::min(fastest, seconds_since(began));
  }
  return fastest;
}

int run(int argc, char** argv, const Cluster& cluster) {
  if (argc < 2) throw ConfigError("usage: mpirun -np 2 bench_ranks CONFIG [K=V]...");
  const std::vector<std::string> overrides(argv + 2, argv + argc);
  const Session session(resolve(load_config(argv[1], overrides)), cluster);
  const auto& recipe = session.recipe();
  if (recipe.train.max_steps <= kWarmUp)
    throw ConfigError("train.max_steps is too small; set it to e.g. 12");
  const auto data = open_train_data(recipe.data, recipe.sources);
  const auto detector = session.make_initial_detector(data.classes);
  const auto flow = session.plan(*detector, data).start_data({});
  double step_s = 0, sync_s = 0, least_sync_s = 0, cpu_s = 0, steps = 0;
  {
    TrainingStep step(*detector, recipe.train, recipe.optimizer, cluster);
    step.broadcast_initial_state();
    LossScale scale;
    for (std::int64_t i = 0; i < recipe.train.max_steps; ++i) {
      const auto batch = flow->next()->value;
      const auto began = Clock::now();
      const auto cpu = cpu_seconds();
      const auto end = step(std::span(&batch, 1), {.seed = 1, .step = i}, 1e-3, scale);
      const auto waited = least(cluster, end.sync_s);
      if (i < kWarmUp) continue;
      step_s += seconds_since(began);
      cpu_s += cpu_seconds() - cpu;
      sync_s += end.sync_s;
      least_sync_s += waited;
      steps += 1;
    }
  }
  const auto alone =
      sums_alone(cluster, detector->parameters(), precision_type(recipe.train.gradient_type));
  if (!cluster.is_chief()) return 0;
  fmt::print(
      "{} ranks, {:.1f} MB of gradients: step {:.4f} s ({:.4f} s of CPU per rank), wait after the "
      "backward pass "
      "{:.4f} s, minimum over ranks {:.4f} s = {:.1f} % of the step; the all-reduces alone "
      "{:.4f} s\n",
      cluster.size(), 4e-6 * static_cast<double>(detector->parameters().trainable_count()),
      step_s / steps, cpu_s / steps, sync_s / steps, least_sync_s / steps,
      100 * least_sync_s / step_s, alone);
  return 0;
}

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) {
  millrace::start_logging();
  millrace::prepare_opencv();
  return millrace::Cluster::run(
      [&](const millrace::Cluster& cluster) { return millrace::run(argc, argv, cluster); });
}
