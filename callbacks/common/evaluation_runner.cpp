#include "millrace/callbacks/common/evaluation_runner.h"

#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <nlohmann/json.hpp>

#include "millrace/base/files.h"
#include "millrace/base/process/stop_signals.h"
#include "millrace/coco/data/detections.h"
#include "millrace/models/detector/restore.h"
#include "millrace/trainer/checkpoint/checkpoint.h"
#include "millrace/trainer/checkpoint/shared_checkpoint.h"
#include "millrace/trainer/evaluation/running_ap.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

constexpr double kApPause = 30;  // seconds between two computations of the preliminary AP

/// Returns the maximum number of images of one rank.
std::int64_t images_per_rank(const EvalData& data, const EvaluationRun& run,
                             const Cluster& cluster) {
  auto all = std::ssize(data.split.annotations->images);
  if (run.max_images > 0) all = std::min(all, run.max_images);
  return (all + cluster.size() - 1) / cluster.size();
}

nlohmann::ordered_json json_of(const DetectorScores& scores) {
  auto json = scores_json(scores);
  json["detections"] = scores.found;
  json["limit"] = limit_json(scores.limit);
  return json;
}

}  // namespace

std::vector<std::string> value_names(EvaluationMode) {
  return {"inline", "score_in_background", "background"};
}

void EvaluationRunner::start(const TrainState& state, const Moment& of, bool waits) {
  const bool is_current = of.step == state.at.step;
  if (is_current && !waits && settings_.mode == EvaluationMode::score_in_background)
    detect_now(state, of);
  else
    detect_later(state, of, waits);
}

void EvaluationRunner::begin(const Moment& of, std::launch how, Work work) {
  of_ = of;
  cancelled_ = false;
  scores_ = std::async(how, [this, work = std::move(work)] {
    const c10::NoGradGuard no_graph;  // this setting is per thread
    return work([this] { return cancelled_ || !StopSignals::received().empty(); });
  });
}

bool EvaluationRunner::has_failed() const try {
  if (is_running() && scores_.wait_for(std::chrono::seconds(0)) == std::future_status::ready)
    scores_.get();
  return false;
} catch (const std::exception&) {
  return true;
}

std::optional<DetectorScores> EvaluationRunner::take(const TrainState& state) {
  auto scores = std::exchange(scores_, {}).get();
  const auto part = std::exchange(part_, nullptr);
  if (!part) return scores;
  if (!part->join(*state.cluster, scores.has_value())) return std::nullopt;
  return scored(*part, state);
}

void EvaluationRunner::cancel() {
  cancelled_ = true;
  scores_ = {};  // waits for the evaluation's thread
  part_.reset();
}

fs::path EvaluationRunner::checkpoint(const TrainState& state, const Moment& of) {
  return checkpoint_of(state.folder / "checkpoints", of.step);
}

/// Detects now, while training waits; the scores are computed in the background.
void EvaluationRunner::detect_now(const TrainState& state, const Moment& of) {
  const auto& data = *state.validation;
  const auto& cluster = *state.cluster;
  auto run = settings_.run;
  run.watch = state.pass_watch();
  const auto evaluation = std::make_shared<DetectorEvaluation>(data.split, run);
  auto& model = are_trained() ? state.model : copy_of(state, of);
  const bool whole = evaluation->detect(model, data.start(share_of(cluster)));
  if (!evaluation->join(cluster, whole)) return;
  begin(of, std::launch::async, [this, evaluation, &state](const auto&) {
    return std::optional(scored(*evaluation, state));
  });
}

/// Detects on a separate thread, or in take() if training waits.
void EvaluationRunner::detect_later(const TrainState& state, const Moment& of, bool waits) {
  const auto& data = *state.validation;
  const auto& cluster = *state.cluster;
  const bool takes_own_model = waits && are_trained() && of.step == state.at.step;
  auto& model = takes_own_model ? state.model : copy_of(state, of);
  // In the background no rank waits for another: parts are joined when the scores are taken.
  const bool joins = waits || cluster.size() == 1;
  auto detect = [this, &model, &data, &state, &cluster, waits, joins, run = settings_.run](
                    const auto& cancelled) mutable -> std::optional<DetectorScores> {
    run.watch = {.cancelled = cancelled, .leftovers = state.cancelled_flows.get()};
    if (waits) run.watch.report_progress = [&state] { state.report_progress(); };
    if (waits && state.is_chief)
      run.so_far = RunningApLog(images_per_rank(data, run, cluster), kApPause);
    auto part = std::make_unique<DetectorEvaluation>(data.split, run);
    const bool whole = part->detect(model, data.start(share_of(cluster)));
    if (joins)
      return part->join(cluster, whole) ? std::optional(scored(*part, state)) : std::nullopt;
    part_ = std::move(part);
    return whole ? std::optional(DetectorScores()) : std::nullopt;
  };
  begin(of, waits ? std::launch::deferred : std::launch::async, std::move(detect));
}

/// Returns a second model with the weights to be scored, as they were at `of`.
Detector& EvaluationRunner::copy_of(const TrainState& state, const Moment& of) {
  if (!copy_) copy_ = state.make_model();
  restore(*copy_, weights(state, of));
  return *copy_;
}

NamedTensors EvaluationRunner::weights(const TrainState& state, const Moment& of) const {
  if (of.step == state.at.step)
    return are_trained() ? named_values(state.model) : state.kept_by(settings_.weights);
  auto saved = read_checkpoint(checkpoint(state, of), *state.cluster);
  return are_trained() ? saved.model : saved.callback_tensors[settings_.weights];
}

DetectorScores EvaluationRunner::scored(DetectorEvaluation& joined, const TrainState& state) const {
  if (!state.is_chief) return {};
  auto scores = joined.scores();
  const auto name = fs::path(settings_.weights) / fmt::format("step-{:06}.json", of_.step);
  const auto results = state.folder / "detections" / name, file = state.folder / "scores" / name;
  if (settings_.run.keep_detections) {
    make_writable_folder(results.parent_path());
    coco::write_detections(results, std::exchange(scores.detections, {}));
  }
  make_writable_folder(file.parent_path());
  write_file_atomically(file, json_of(scores).dump() + "\n");
  return scores;
}

}  // namespace millrace
