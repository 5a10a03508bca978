#include "millrace/trainer/run/training_start.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "millrace/base/disk/record_file.h"
#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/log.h"
#include "millrace/base/text.h"
#include "millrace/dataflow/detection/count_objects.h"
#include "millrace/dataflow/engine/order.h"
#include "millrace/dataflow/engine/source.h"
#include "millrace/dataflow/largest_batch.h"
#include "millrace/dataflow/sources/train_data.h"
#include "millrace/models/detector/make_detector.h"
#include "millrace/trainer/checkpoint/shared_checkpoint.h"
#include "millrace/trainer/edit_journal.h"
#include "millrace/trainer/run/config_changes.h"
#include "millrace/trainer/run/data_facts.h"
#include "millrace/trainer/run/divergence.h"
#include "millrace/trainer/run/published_accuracy.h"
#include "millrace/trainer/run/run_facts.h"
#include "millrace/trainer/run/trained_weights.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

constexpr bool kCollective = true, kAlone = false;

void log_ranks(const Cluster& cluster, const nlohmann::ordered_json& ranks) {
  if (cluster.size() == 1) return;
  for (const auto& rank : ranks)
    log_info("{}: local rank {} of {}, {}, {}", cluster.name(rank.at("rank").get<std::int64_t>()),
             rank.at("local_rank").get<int>(), rank.at("local_size").get<int>(),
             rank.at("device").get<std::string>(),
             counted(rank.at("maths_threads").get<int>(), "thread"));
}

/// Asks the detector whether it can learn from the data; rank 0 logs its warnings. Throws
/// ConfigError if it cannot.
void check_training(const Detector& detector, const TrainData& data, bool starts_random,
                    bool in_micro_batches, const Cluster& cluster) {
  TrainingFacts facts{.ranks = cluster.size(),
                      .in_micro_batches = in_micro_batches,
                      .starts_random = starts_random};
  if (data.source)
    facts.count_objects = [&, counts = std::optional<ObjectCounts>()]() mutable {
      if (!counts) counts = count_objects(*data.source);
      return *counts;
    };
  const auto warnings = detector.check_training(facts);
  if (!cluster.is_chief()) return;
  for (const auto& warning : warnings) log_warning("{}", warning);
}

/// Returns the number of samples per epoch; nullopt if unknown on this rank.
std::optional<std::int64_t> epoch_size(const TrainData& train) {
  if (!train.source) return std::nullopt;
  return Order(train.source->size(), train.source->repeats(), 0, {}).size();
}

/// Returns the origin of each value of the configuration, as JSON.
std::string origins_text(const Config& tree) {
  nlohmann::ordered_json origins = nlohmann::ordered_json::object();
  for (const auto& [key, value] : leaves(tree)) origins[key] = value->origin.text();
  return origins.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

/// Returns the largest batch of the whole run; nullopt if unknown.
std::optional<LargestBatch> largest_batch(const Recipe& recipe, const TrainData& data,
                                          std::int64_t ranks) {
  const auto images = static_cast<double>(recipe.data.batch_size * ranks);
  const auto whole = data.source ? recipe.train.epochs * epoch_length(*data.source) / images : 0;
  const auto most = static_cast<double>(recipe.train.max_steps * recipe.optimizer.accumulate);
  const auto batches = std::ceil(most > 0 ? std::min(whole, most) : whole);
  return largest_train_batch(recipe.data, recipe.stages, data,
                             static_cast<std::uint64_t>(recipe.train.seed), ranks,
                             static_cast<std::int64_t>(batches));
}

/// Opens the validation split. nullopt if not configured, or if it cannot be opened and no callback
/// needs it.
std::optional<EvalData> open_validation(const Session& session, const TrainData& train,
                                        const CallbackList& callbacks) {
  auto options = session.recipe().data;
  if (options.val.empty()) return std::nullopt;
  options.classes = train.classes;
  try {
    return session.passes_over(open_split(options, options.val));
  } catch (const Error& problem) {
    if (callbacks.need_validation()) throw;
    log_info("continuing without the validation split, which no callback of this run needs: {}",
             problem.what());
    return std::nullopt;
  }
}

/// Warns about edits by [callbacks.live_edit] after the checkpoint if this run would not repeat
/// them.
void warn_of_lost_edits(const fs::path& folder, std::int64_t step, const Recipe& recipe) try {
  if (has_live_edit(recipe)) return;
  const auto lost = std::ranges::count_if(read_edits(folder),
                                          [&](const Edit& edit) { return edit.after_step > step; });
  if (lost > 0)
    log_warning(
        "{}: {} after step {} will not be repeated, since this run has no callbacks.live_edit",
        (folder / "edits.jsonl").string(), counted(lost, "edit"), step);
} catch (const Error& problem) {
  log_warning("{}", problem.what());
}

/// Logs how a step changes if the number of ranks differs from that of the start `last`.
void log_changed_ranks(const nlohmann::ordered_json& last, const TrainPlan& plan) {
  const auto ranks = last.find("ranks");
  const auto before = ranks == last.end() ? 0 : std::ssize(*ranks), now = plan.cluster.size() * 1L;
  if (before == 0 || before == now) return;
  const auto images = plan.images_per_step / now * before;
  log_info(
      "changed since the checkpoint: ranks: was {}, is {}: a step has {} instead of {}, at a "
      "learning rate of {:.4g} instead of {:.4g}",
      before, now, counted(plan.images_per_step, "image"), images,
      plan.optimizer.scaled_lr(plan.images_per_step), plan.optimizer.scaled_lr(images));
}

}  // namespace

bool has_live_edit(const Recipe& recipe) {
  return std::ranges::count(recipe.callbacks, "live_edit", &RecipeCallback::type) > 0;
}

/// A step of the start. COLLECTIVE: it exchanges data with the other ranks, so every rank must
/// execute it. Other steps must not exchange data.
struct TrainingStart::Step {
  const char* name;
  bool is_collective;
  void (TrainingStart::*take)();
};

const TrainingStart::Step TrainingStart::kSteps[] = {
    {"callbacks", kCollective, &TrainingStart::make_callbacks},
    {"run to resume", kCollective, &TrainingStart::find_run},
    {"checkpoint", kCollective, &TrainingStart::read_checkpoint},
    {"change after a divergence", kAlone, &TrainingStart::change_after_return},
    {"data", kAlone, &TrainingStart::open_data},
    {"detector", kAlone, &TrainingStart::make_detector},
    {"facts of the ranks", kCollective, &TrainingStart::share_facts},
    {"checks of the training", kAlone, &TrainingStart::check_training},
    {"checks of the checkpoint", kAlone, &TrainingStart::check_resume},
    {"whether the run is done", kCollective, &TrainingStart::agree_if_done},
    {"weights", kAlone, &TrainingStart::set_values},
    {"trainer", kCollective, &TrainingStart::make_trainer},
    {"values of rank 0", kCollective, &TrainingStart::prepare_trainer},
    {"new run folder", kAlone, &TrainingStart::make_folder},
    {"run folder", kCollective, &TrainingStart::share_folder},
};

TrainingStart::TrainingStart(const Session& session, const RunOptions& options,
                             Clock::time_point began, const std::optional<TrainEnd>& diverged)
    : session_(session),
      options_(options),
      recipe_(session.recipe()),
      cluster_(session.cluster()),
      began_(began),
      diverged_(diverged),
      mine_(identity_of(options.config_file, recipe_.tree)) {}

void TrainingStart::take() try {
  for (const auto& step : kSteps) {
    cluster_.set_place(fmt::format("the start ({})", step.name));
    const auto before = cluster_.exchanges();
    (this->*step.take)();
    if (!step.is_collective && cluster_.exchanges() != before)
      throw std::logic_error(fmt::format(
          "start step '{}' is not marked as collective, but exchanged data with other ranks",
          step.name));
    if (is_done_) return;
  }
} catch (const std::exception&) {
  if (is_new_) remove_folder();  // a start that fails leaves no folder
  throw;
}

void TrainingStart::make_callbacks() {
  callbacks_ = millrace::make_callbacks(recipe_);
  auto recorder = std::make_unique<RunRecorder>(recipe_, cluster_, began_, diverged_.has_value());
  recorder_ = recorder.get();
  callbacks_.add(kRecordFile, std::move(recorder));
}

/// Only rank 0 sees the run's folder.
void TrainingStart::find_run() {
  if (is_chief() && options_.resumed)
    record_.emplace(own_folder_.emplace(*options_.resumed), mine_);
  folder_ = cluster_.broadcast("run to resume", own_folder_ ? own_folder_->path().string() : "");
  is_new_ = folder_.empty();
}

void TrainingStart::read_checkpoint() {
  if (!is_new_) checkpoint_ = newest_checkpoint_of(folder_, cluster_);
}

void TrainingStart::change_after_return() {
  if (!diverged_) return;
  const auto change = millrace::change_after_return(checkpoint_->at, diverged_->at, recipe_.train);
  if (is_chief())
    log_warning("{}{}", change,
                has_live_edit(recipe_) ? edits_text(folder_, diverged_->at.step) : "");
}

void TrainingStart::open_data() {
  train_ = open_train_data(recipe_.data, recipe_.sources);
  if (is_chief() && train_->source) log_info("{}", data_summary(*train_->source, train_->classes));
  if (is_chief() && !checkpoint_) check_initial_weights(recipe_);
  validation_ = open_validation(session_, *train_, callbacks_);
}

void TrainingStart::make_detector() {
  detector_ = session_.make_detector(train_->classes);
  const auto& parameters = detector_->parameters();
  log_info("{}: {} classes, {:.1f} M values in {} tensors, {:.1f} M of them trained",
           recipe_.model_type, train_->classes.size(),
           static_cast<double>(parameters.count()) / 1e6, parameters.size(),
           static_cast<double>(parameters.trainable_count()) / 1e6);
}

void TrainingStart::share_facts() {
  rank_facts_ = rank_facts(cluster_, session_.device().str());
  log_ranks(cluster_, rank_facts_);
}

void TrainingStart::check_training() {
  const bool starts_random = recipe_.weights.empty() && !checkpoint_;
  millrace::check_training(*detector_, *train_, starts_random, recipe_.train.micro_batch > 0,
                           cluster_);
  if (is_chief()) data_facts_ = data_facts(recipe_, *train_, validation_ ? &*validation_ : nullptr);
}

void TrainingStart::check_resume() {
  if (!checkpoint_) return;
  millrace::check_resume(*checkpoint_,
                         {.config = recipe_.tree,
                          .classes = train_->classes,
                          .epoch_size = epoch_size(*train_).value_or(checkpoint_->epoch_size),
                          .model = *detector_});
  if (diverged_) return;
  if (const auto change = count_returns_anew(*checkpoint_, recipe_.tree);
      !change.empty() && is_chief())
    log_info("{}", change);
}

void TrainingStart::agree_if_done() {
  if (!checkpoint_) return;
  const bool is_done = has_all_steps(checkpoint_->at, recipe_.train) && record_ &&
                       record_->record().done_after() == checkpoint_->at.step;
  is_done_ = cluster_.broadcast("whether the run is done", is_done ? "done" : "") == "done";
}

void TrainingStart::set_values() {
  if (!checkpoint_) {  // the other ranks receive the values from rank 0
    if (is_chief()) session_.load_initial_weights(*detector_, train_->classes);
    return;
  }
  check_resumed_weights(parse_config(checkpoint_->config, "the checkpoint's config.toml"), recipe_);
  if (const auto failed = record_ ? record_->record().ended_after(kDivergence).value_or(0) : 0;
      failed > 0 && !recipe_.train.returns())
    go_further_back(checkpoint_->at, failed);
  if (record_) warn_of_lost_edits(folder_, checkpoint_->at.step, recipe_);
  if (record_) check_same_data(record_->record().last(), data_facts_);
}

void TrainingStart::make_trainer() {
  auto plan = session_.plan(*detector_, *train_);
  if (is_chief())
    for (const auto& warning : published_warnings(recipe_, plan.images_per_step))
      log_warning("{}", warning);
  if (record_ && checkpoint_) log_changed_ranks(record_->record().last(), plan);
  if (cluster_.local_rank() == 0)
    plan.largest_batch = largest_batch(recipe_, *train_, cluster_.size());
  plan.validation = validation_ ? &*validation_ : nullptr;
  plan.metadata = to_metadata(
      model_card(recipe_, train_->classes,
                 validation_ ? validation_->split.category_ids : std::vector<std::int64_t>()));
  plan.is_return = diverged_.has_value();
  trainer_.emplace(std::move(plan), std::move(callbacks_));
  if (checkpoint_) trainer_->resume(*checkpoint_);
}

void TrainingStart::prepare_trainer() { trainer_->prepare(); }

void TrainingStart::make_folder() {
  if (!is_chief()) return;
  if (is_new_)
    record_.emplace(own_folder_.emplace(make_run_folder(options_.output, mine_.name)), mine_);
  own_folder_->keep_log();
  const auto& path = own_folder_->path();
  write_file_atomically(path / "config.toml", to_toml(recipe_.tree));
  write_file_atomically(path / "origins.json", origins_text(recipe_.tree));
  const auto price = recipe_.train.price_per_hour;
  record_->begin(trainer_->at().step, options_.config_file, options_.program,
                 {{"data", std::move(data_facts_)},
                  {"weights", weights_facts(recipe_.weights)},
                  {"price_per_hour", price > 0 ? nlohmann::ordered_json(price) : nullptr},
                  {"ranks", std::move(rank_facts_)}},
                 recorder_->targets());
  recorder_->record_in(*record_);
  log_info("run folder {}", path.string());
}

void TrainingStart::share_folder() {
  folder_ = cluster_.broadcast("run folder", own_folder_ ? own_folder_->path().string() : "");
  trainer_->set_folder(folder_);
}

}  // namespace millrace
