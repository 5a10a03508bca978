#include "millrace/callbacks/common/evaluation_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "millrace/models/detector/restore.h"
#include "millrace/trainer/checkpoint/checkpoint.h"
#include "millrace/trainer/checkpoint/shared_checkpoint.h"
#include "millrace/trainer/evaluation/running_ap.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

constexpr double kApPause = 30;  // seconds between two looks at AP so far

/// Images that one rank detects in.
std::int64_t images_per_rank(const EvalData& data, const EvaluationRun& run,
                             const Cluster& cluster) {
  auto all = std::ssize(data.split.annotations->images);
  if (run.max_images > 0) all = std::min(all, run.max_images);
  return (all + cluster.size() - 1) / cluster.size();
}

/// The joined scores, written to `files`; empty except on the chief.
DetectorScores scored(DetectorEvaluation& joined, const Cluster& cluster,
                      const EvaluationFiles& files) {
  return cluster.is_chief() ? written(joined.scores(), files) : DetectorScores();
}

}  // namespace

std::vector<std::string> value_names(EvaluationMode) {
  return {"inline", "score_in_background", "background"};
}

void EvaluationRunner::start(TrainState& state, const Moment& of, bool waits) {
  const bool is_current = of.step == state.at.step;
  if (is_current && !waits && settings_.mode == EvaluationMode::score_in_background)
    detect_now(state, of);
  else
    detect_later(state, of, waits);
}

std::optional<DetectorScores> EvaluationRunner::take(const TrainState& state) {
  const auto pending = std::exchange(pending_, nullptr);
  auto scores = pending->scores();
  const auto part = std::exchange(part_, nullptr);
  if (!part) return scores;
  if (!part->join(*state.cluster, scores.has_value())) return std::nullopt;
  return scored(*part, *state.cluster, files(state, pending->of()));
}

fs::path EvaluationRunner::checkpoint(const TrainState& state, const Moment& of) {
  return checkpoint_of(state.folder / "checkpoints", of.step);
}

/// Training waits for the detections; they are scored in the background.
void EvaluationRunner::detect_now(TrainState& state, const Moment& of) {
  const auto& data = *state.validation;
  const auto& cluster = *state.cluster;
  auto run = settings_.run;
  run.watch = state.pass_watch();
  const auto evaluation = std::make_shared<DetectorEvaluation>(data.split, run);
  auto& model = are_trained() ? state.model : copy_of(state, of);
  const bool whole = evaluation->detect(model, data.start(share_of(cluster)));
  if (!evaluation->join(cluster, whole)) return;
  pending_ = std::make_unique<PendingEvaluation>(
      of, std::launch::async, [evaluation, &cluster, files = files(state, of)](const auto&) {
        return std::optional(scored(*evaluation, cluster, files));
      });
}

/// Detects in a thread of its own, or in take() if training waits.
void EvaluationRunner::detect_later(TrainState& state, const Moment& of, bool waits) {
  const auto& data = *state.validation;
  const auto& cluster = *state.cluster;
  const bool takes_own_model = waits && are_trained() && of.step == state.at.step;
  auto& model = takes_own_model ? state.model : copy_of(state, of);
  // In the background no rank waits for another: parts are joined when the scores are taken.
  const bool joins = waits || cluster.size() == 1;
  auto detect =
      [this, &model, &data, &state, &cluster, waits, joins, run = settings_.run,
       files = files(state, of)](const auto& cancelled) mutable -> std::optional<DetectorScores> {
    run.watch = {.cancelled = cancelled, .leftovers = state.cancelled_flows.get()};
    if (waits) run.watch.moves = [&state] { state.moves(); };
    if (waits && state.is_chief)
      run.so_far = RunningApLog(images_per_rank(data, run, cluster), kApPause);
    auto part = std::make_unique<DetectorEvaluation>(data.split, run);
    const bool whole = part->detect(model, data.start(share_of(cluster)));
    if (joins)
      return part->join(cluster, whole) ? std::optional(scored(*part, cluster, files))
                                        : std::nullopt;
    part_ = std::move(part);
    return whole ? std::optional(DetectorScores()) : std::nullopt;
  };
  pending_ = std::make_unique<PendingEvaluation>(
      of, waits ? std::launch::deferred : std::launch::async, std::move(detect));
}

/// A second model with the weights to be scored, as they were at `of`.
Detector& EvaluationRunner::copy_of(TrainState& state, const Moment& of) {
  if (!copy_) copy_ = state.make_model();
  restore(*copy_, weights(state, of));
  return *copy_;
}

NamedTensors EvaluationRunner::weights(TrainState& state, const Moment& of) const {
  if (of.step == state.at.step)
    return are_trained() ? named_values(state.model) : state.kept_by(settings_.weights);
  auto saved = read_checkpoint(checkpoint(state, of), *state.cluster);
  return are_trained() ? saved.model : saved.callback_tensors[settings_.weights];
}

EvaluationFiles EvaluationRunner::files(const TrainState& state, const Moment& of) const {
  const fs::path name = fs::path(settings_.weights) / fmt::format("step-{:06}.json", of.step);
  return {settings_.writes_results ? state.folder / "detections" / name : fs::path(),
          state.folder / "scores" / name};
}

}  // namespace millrace
