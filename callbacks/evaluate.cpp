// [callbacks.evaluate]: COCO's twelve scores of boxes and masks over the validation split, computed
// while training waits or in the background.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "millrace/base/clock.h"
#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/base/text.h"
#include "millrace/callbacks/common/evaluation_runner.h"
#include "millrace/callbacks/common/score_history.h"
#include "millrace/trainer/callback.h"
#include "millrace/trainer/checkpoint/checkpoint_holds.h"
#include "millrace/trainer/train_state.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

/// Returns the names of COCO's scores, then the additional ones of LVIS.
std::vector<std::string> all_score_names() {
  auto names = score_names(/*federated=*/false);
  for (auto& name : score_names(/*federated=*/true))
    if (std::ranges::count(names, name) == 0) names.push_back(std::move(name));
  return names;
}

struct EvaluateOptions {
  std::string every = "1 epoch";
  std::int64_t images = 0;
  std::int64_t max_detections = 0;
  EvaluationMode mode = EvaluationMode::waiting;
  Options::Table targets;
  std::string weights = "trained";
  bool results = true;
  bool boundary = false;
  bool proposals = false;

  void describe(Options& o) {
    o.add("every", every, "interval; also after the last step").affects(Affects::evaluation);
    o.add("images", images, "number of images, from the first; 0 = all",
          {.min = 0, .unit = "images"})
        .affects(Affects::evaluation);
    o.add("max_detections", max_detections,
          "maximum detections per image and class (LVIS: per image) that AP counts, for scenes "
          "with more objects; 0 = COCO's 100, LVIS's 300",
          {.min = 0, .max = 1e5, .unit = "detections"})
        .affects(Affects::evaluation);
    o.add("mode", mode,
          "inline: training waits for the scores; score_in_background: for the detections only; "
          "background: for nothing, while a copy of the weights is evaluated")
        .affects(Affects::run);
    o.add("targets", targets, "scores at which training ends, once all are reached",
          all_score_names(), {.min = 0, .max = 1});
    o.add("weights", weights,
          "weights to evaluate: the trained ones, or the name of a callback that keeps others, "
          "e.g. average_weights, which then prefixes the names of the scores")
        .affects(Affects::evaluation);
    o.add("results", results, "also write the detections to detections/, as COCO results")
        .affects(Affects::run);
    o.add("boundary", boundary, "also score masks by their boundaries: boundary/AP ...")
        .affects(Affects::evaluation);
    o.add("proposals", proposals,
          "also score the proposals for the second stage: proposals/AR@100 ...")
        .affects(Affects::evaluation);
  }

  void check(const Config& table) const {
    require(table, "max_detections", max_detections == 0 || max_detections >= 100,
            "must be 0 or at least 100, COCO's limit");
  }
};

/// Runs `work`; turns its exception into an Error naming the step of the evaluation.
template <class Work>
decltype(auto) naming(const Moment& of, Work work) try {
  return work();
} catch (const std::exception& problem) {
  throw Error(fmt::format("evaluation of step {}: {}", of.step, problem.what()));
}

/// Decides when to evaluate, and publishes the scores. At most one evaluation runs. Its scores are
/// taken when the next one is due or training ends, never earlier, so that results do not depend on
/// its speed. Until then, the checkpoint of its step is held, so that a resumed run can evaluate it
/// again and keep_best can keep it. Rank 0 broadcasts the scores.
class EvaluateDetector final : public Callback,
                               public PublishesMetrics,
                               public UsesWeights,
                               public NeedsValidation,
                               public SavesState {
 public:
  using Options = EvaluateOptions;
  static constexpr bool kByDefault = true;

  explicit EvaluateDetector(Options options) : options_(std::move(options)) {}

  void before_train(const TrainState& state) override {
    if (!state.validation) {
      log_warning("no validation split (data.val): nothing will be evaluated");
      return;
    }
    if (!are_trained()) state.kept_by(options_.weights);  // throws if that callback does not exist
    gives_masks_ = state.model.gives_masks();
    federated_ = coco::is_federated(*state.validation->split.annotations);
    if (options_.boundary && !gives_masks_)
      throw ConfigError(fmt::format("callbacks.evaluate.boundary: {} predicts no masks; remove it",
                                    state.model.title()));
    if (options_.proposals && !state.model.gives_notes())
      throw ConfigError(
          fmt::format("callbacks.evaluate.proposals: {} has no second stage, or merges several "
                      "views of an image (model.test.aug_flip, model.test.aug_scales); remove it",
                      state.model.title()));
    check_targets(state.model);
    if (state.is_chief)
      if (const auto text = coco::text(limit_cost(state.validation->split, run_of()));
          !text.empty())
        log_warning("{}; raise callbacks.evaluate.max_detections to count more", text);
    if (!state.make_model &&
        (options_.mode == EvaluationMode::background || !are_trained() || !pending_.empty()))
      throw Error("evaluating a copy of the model requires a TrainPlan with make_model");
    if (stop_at_targets(state)) return;
    for (const auto& [of, held] : std::exchange(pending_, {})) {
      if (of.step == state.at.step || is_saved(state, of))
        evaluate(state, of);
      else
        log_error("skipped the evaluation of step {}: {} not found", of.step,
                  EvaluationRunner::checkpoint(state, of).string());
    }
  }

  void after_step(const TrainState& state) override {
    if (runner_.has_failed()) collect(state);
  }

  void trigger(const TrainState& state) override {
    if (!state.validation) return;
    evaluate(state, state.now());
    if (runner_.is_running()) state.save_checkpoint();
  }

  void after_train(const TrainState& state) override {
    // Taking scores now would make results depend on their speed, so a resumed run evaluates again.
    if (state.is_interrupted()) runner_.cancel();
    if (!state.failure.empty() && state.cluster->size() > 1) return runner_.cancel();
    if (runner_.is_running() && collect(state) && state.failure.empty()) state.save_checkpoint();
    if (!state.failure.empty() || history_.last().empty()) return;
    const auto whose = are_trained() ? "" : " of " + options_.weights;
    log_result(history_.last_text(whose));
    log_info_in_file("all scores\n" + history_.last_tables());
    log_info(
        "{}{}", history_.best_text(whose),
        options_.results ? "; detections are in " + (state.folder / "detections").string() : "");
  }

  bool chief_only() const override { return false; }

  std::string weights_of() const override { return are_trained() ? "" : options_.weights; }

  std::vector<std::string> publishes() const override {
    auto names = federated_ ? score_names(*federated_, max_detections()) : all_score_names();
    if (!gives_masks_) std::erase_if(names, is_of_masks);
    if (options_.boundary)
      std::ranges::copy(boundary_score_names(federated_.value_or(false), max_detections()),
                        std::back_inserter(names));
    if (options_.proposals) std::ranges::copy(proposal_score_names(), std::back_inserter(names));
    for (auto& name : names) name.insert(0, prefix());
    names.push_back(seconds_name("evaluate_s"));
    names.push_back(seconds_name("evaluate_wait_s"));
    return names;
  }

  nlohmann::json save_state() const override {
    auto pending = nlohmann::json::array();
    for (const auto& [of, held] : pending_) pending.push_back({of.step, of.progress});
    return {{"owed", pending}, {"history", history_.state()}};
  }
  void load_state(const TrainState&, const nlohmann::json& saved) override {
    for (const auto& of : saved.at("owed")) pending_.push_back({{of.at(0), of.at(1)}, nullptr});
    history_.load(saved.at("history"));
  }

 private:
  /// An evaluation that is due or started and has no scores yet.
  struct Pending {
    Moment of;
    CheckpointHold checkpoint;
  };

  /// Returns true if the checkpoint still exists on rank 0.
  static bool is_saved(const TrainState& state, const Moment& of) {
    return !state.cluster
                ->broadcast("checkpoint to evaluate",
                            fs::exists(EvaluationRunner::checkpoint(state, of)) ? "yes" : "")
                .empty();
  }

  /// Takes the scores of the previous evaluation, then starts the evaluation of `of`.
  void evaluate(const TrainState& state, const Moment& of) {
    pending_.push_back({of, state.hold_checkpoint(of.step)});
    if (runner_.is_running() && !collect(state)) return;
    if (stop_at_targets(state)) return;
    const bool waits = options_.mode == EvaluationMode::waiting || state.is_last;
    const auto began = Clock::now();
    naming(of, [&] { runner_.start(state, of, waits); });
    waited_s_ = seconds_since(began);
    if (runner_.is_running() && waits) collect(state);
  }

  EvaluationRun run_of() const {
    return {.max_images = options_.images,
            .keep_detections = options_.results,
            .max_detections = max_detections(),
            .boundary = options_.boundary,
            .proposals = options_.proposals};
  }
  std::uint32_t max_detections() const {
    return static_cast<std::uint32_t>(options_.max_detections);
  }

  bool are_trained() const { return options_.weights == "trained"; }

  /// Prefix of the names of scores.
  std::string prefix() const { return are_trained() ? "" : options_.weights + "/"; }
  std::string seconds_name(const char* what) const { return "time/" + prefix() + what; }

  static bool is_of_masks(const std::string& score) { return score.starts_with("segm/"); }

  void check_targets(const Detector& model) const {
    for (const auto& [name, target] : options_.targets) {
      if (std::ranges::count(score_names(*federated_, max_detections()), name) == 0)
        throw ConfigError(fmt::format(
            "targets: '{}' is never published: the validation split is {}", name,
            *federated_ ? "scored by LVIS's rules" : "scored by COCO's rules, not LVIS's"));
      if (!gives_masks_ && is_of_masks(name))
        throw ConfigError(
            fmt::format("targets: '{}' is never published, since {} predicts no masks; remove it, "
                        "or train a model with masks",
                        name, model.title()));
    }
  }

  /// Takes and publishes the scores. Returns false if the process received a stop signal before
  /// they were available.
  bool collect(const TrainState& state) {
    const auto began = Clock::now();
    const auto of = runner_.of();
    const auto scores = naming(of, [&] { return runner_.take(state); });
    if (!scores) return false;
    waited_s_ += seconds_since(began);
    // Protects the checkpoint until the targets are checked.
    const auto held = state.hold_checkpoint(of.step);
    std::erase_if(pending_, [&](const Pending& one) { return one.of.step == of.step; });
    if (state.is_chief) history_.add(of, *scores);
    if (state.cluster->size() > 1)
      history_.load(nlohmann::json::parse(
          state.cluster->broadcast("scores", state.is_chief ? history_.state().dump() : "")));
    auto metrics = history_.last();
    for (auto& [name, value] : metrics) name.insert(0, prefix());
    metrics.emplace_back(seconds_name("evaluate_s"), scores->seconds);
    metrics.emplace_back(seconds_name("evaluate_wait_s"), waited_s_);
    state.publish(of, metrics);
    if (state.is_chief) log_scores(of, *scores);
    if (stop_at_targets(state)) {
      reached_ = held;
      log_info("the checkpoint that reached the targets is {}",
               EvaluationRunner::checkpoint(state, of).string());
    }
    return true;
  }

  void log_scores(const Moment& of, const DetectorScores& scores) const {
    const auto masks = scores.masks ? fmt::format(", mask AP {:.4f}", scores.masks->stats[0]) : "";
    log_info("step {}: {}box AP {:.4f}{} ({} in {}; training paused for {})", of.step,
             are_trained() ? "" : options_.weights + ", ", scores.boxes.stats[0], masks,
             counted(scores.images, "image"), duration_text(scores.seconds),
             duration_text(waited_s_));
  }

  /// Ends training with a checkpoint if the last scores reach all targets.
  bool stop_at_targets(const TrainState& state) const {
    const auto reached = history_.reach(options_.targets);
    if (!reached) return false;
    state.stop(fmt::format("reaching its targets ({})", *reached));
    state.save_checkpoint();
    return true;
  }

  EvaluateOptions options_;
  EvaluationRunner runner_{{run_of(), options_.mode, are_trained() ? "" : options_.weights}};
  ScoreHistory history_;
  bool gives_masks_ = true;
  // True if the validation split is federated; nullopt = not known yet.
  std::optional<bool> federated_;
  // Evaluations without scores, rarely two; the first is the one in runner_.
  std::vector<Pending> pending_;
  CheckpointHold reached_;  // hold on the checkpoint that reached the targets
  double waited_s_ = 0;     // seconds that training waited for the evaluation in runner_
};

MILLRACE_REGISTER(
    register_callback<EvaluateDetector>("evaluate", "scores the detector on the validation split"));

}  // namespace
}  // namespace millrace
