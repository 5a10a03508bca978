#include "millrace/trainer/run/run_recorder.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <tuple>

#include "millrace/base/disk/status_files.h"
#include "millrace/base/log.h"
#include "millrace/base/options.h"
#include "millrace/base/process/process_usage.h"
#include "millrace/trainer/cluster/gather_values.h"
#include "millrace/trainer/train_state.h"

namespace millrace {
namespace {

constexpr double kMeasureEnergyEvery = 30;  // seconds; energy counters overflow after minutes
constexpr double kMiB = 1 << 20;

bool is_ap(std::string_view name) { return name.ends_with("bbox/AP") || name.ends_with("segm/AP"); }

/// Returns the scores that end a training when all are reached.
std::map<std::string, double> targets_of(const RecipeCallback& evaluate) {
  std::map<std::string, double> targets;
  const auto* weights = evaluate.table.find("weights");
  const auto whose = weights ? std::get<std::string>(weights->data) : "trained";
  const auto* table = evaluate.table.find("targets");
  if (!table || !table->is_table()) return targets;
  for (const auto& [name, value] : table->table()) {
    const auto* real = std::get_if<double>(&value.data);
    const auto* whole = std::get_if<std::int64_t>(&value.data);
    targets[(whose == "trained" ? "" : whose + "/") + name] = real    ? *real
                                                              : whole ? static_cast<double>(*whole)
                                                                      : 0;
  }
  return targets;
}

double of_all(const std::map<std::string, double>& by_callback,
              const std::vector<std::string>& names) {
  double sum = 0;
  for (const auto& name : names)
    if (const auto found = by_callback.find(name); found != by_callback.end()) sum += found->second;
  return sum;
}

}  // namespace

RunRecorder::RunRecorder(const Recipe& recipe, const Cluster& cluster, Clock::time_point began,
                         bool was_used)
    : cluster_(cluster),
      began_(began),
      price_per_hour_(recipe.train.price_per_hour),
      cpu_before_(static_cast<std::size_t>(cluster.size())) {
  for (const auto& callback : recipe.callbacks) {
    if (callback.type == "evaluate") targets_.merge(targets_of(callback));
    if (callback.type == "evaluate" || callback.type == "validation_loss")
      evaluations_.push_back(callback.name);
  }
  const double mine = cpu_seconds();
  if (was_used) cpu_before_ = cluster.numbers("CPU time so far", {&mine, 1});
  if (cluster.local_rank() == 0) energy_j_ = meter_.joules();
}

void RunRecorder::before_train(const TrainState& state) {
  state_ = &state;
  // The work of other callbacks is counted as theirs.
  before_first_ = {seconds_since(began_) - state.spent.callbacks_s,
                   own_cpu_s() - state.spent_cpu.callbacks_s};
}

void RunRecorder::after_step(const TrainState&) {
  if (energy_j_ && seconds_since(measured_) >= kMeasureEnergyEvery) measure_energy();
}

void RunRecorder::after_train(const TrainState& state) {
  if (start_) start_->used(state.at.step, use());
}

void RunRecorder::on_checkpoint(const TrainState& state, const std::filesystem::path&) {
  if (start_) start_->used(state.at.step, use());
}

void RunRecorder::on_scalars(const TrainState& state, const Moment& of, const Scalars& published) {
  if (!start_) return;
  Scalars scores;
  for (const auto& one : published)
    if (is_ap(one.first) || targets_.contains(one.first)) scores.push_back(one);
  if (!scores.empty()) start_->reached(of, scores, state.at.step, use());
}

double RunRecorder::own_cpu_s() const {
  return cpu_seconds() - cpu_before_[static_cast<std::size_t>(cluster_.rank())];
}

void RunRecorder::measure_energy() {
  measured_ = Clock::now();
  if (energy_j_) energy_j_ = meter_.joules();
}

RunUse RunRecorder::use() {
  RunUse use{.wall_s = seconds_since(began_), .cpu_s = own_cpu_s()};
  use.peak_memory_mib.resize(static_cast<std::size_t>(cluster_.size()));
  use.peak_memory_mib[static_cast<std::size_t>(cluster_.rank())] = peak_rss_bytes() >> 20;
  measure_energy();
  if (cluster_.local_size() == cluster_.size()) use.energy_j = energy_j_;
  if (price_per_hour_ > 0) use.price = price_per_hour_ * use.wall_s / 3600;
  if (!state_) return use;
  const auto set = [&](RunPart part, const auto& seconds) {
    use[part] = {seconds(state_->spent), seconds(state_->spent_cpu)};
  };
  const auto evaluation = [&](const Spent& of) { return of_all(of.by_callback, evaluations_); };
  use[RunPart::start] = before_first_;
  set(RunPart::data, [](const Spent& of) { return of.data_s; });
  set(RunPart::forward, [](const Spent& of) { return of.forward_s; });
  set(RunPart::backward, [](const Spent& of) { return of.backward_s; });
  set(RunPart::sync, [](const Spent& of) { return of.exchange_s + of.sync_s; });
  set(RunPart::optimizer, [](const Spent& of) {
    return std::max(0.0, of.step_s - of.forward_s - of.backward_s - of.sync_s);
  });
  set(RunPart::evaluation, evaluation);
  set(RunPart::checkpoints, [](const Spent& of) { return of.checkpoints_s; });
  set(RunPart::callbacks, [&](const Spent& of) { return of.callbacks_s - evaluation(of); });
  if (cluster_.size() > 1 && start_) add_other_ranks(use);
  return use;
}

/// Reads the CPU time and memory of the other ranks from their status files.
void RunRecorder::add_other_ranks(RunUse& use) const try {
  const auto files = read_status_files(start_->folder(), start_->number());
  const auto ranks = std::min(files.size(), use.peak_memory_mib.size());
  for (std::size_t rank = 1; rank < ranks; ++rank) {
    if (files[rank].is_null()) continue;
    const auto& status = files[rank].at("status");
    use.cpu_s += std::max(0.0, status.value("cpu_s", 0.0) - cpu_before_[rank]);
    use.peak_memory_mib[rank] =
        static_cast<std::int64_t>(status.value("memory_peak_bytes", 0.0) / kMiB);
  }
} catch (const std::exception& problem) {
  log_warning("{}; the record contains only the resources of rank 0", problem.what());
}

RunUse RunRecorder::whole_use() {
  auto whole = use();
  // CPU seconds, peak memory in MiB, and energy: 0 except on the first rank of a host, nullopt if
  // the host does not report it.
  using OfRank = std::tuple<double, std::int64_t, std::optional<double>>;
  const auto energy = cluster_.local_rank() == 0 ? energy_j_ : 0;
  const auto all = gather_values(cluster_, "resources used",
                                 OfRank(own_cpu_s(), peak_rss_bytes() >> 20, energy));
  whole.cpu_s = 0;
  whole.energy_j = 0;
  whole.peak_memory_mib.clear();
  for (const auto& [cpu_s, memory_mib, joules] : all) {
    whole.cpu_s += cpu_s;
    whole.energy_j =
        whole.energy_j && joules ? std::optional(*whole.energy_j + *joules) : std::nullopt;
    whole.peak_memory_mib.push_back(memory_mib);
  }
  return whole;
}

}  // namespace millrace
