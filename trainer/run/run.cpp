#include "millrace/trainer/run/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <utility>

#include "millrace/base/clock.h"
#include "millrace/base/disk/record_file.h"
#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/log.h"
#include "millrace/base/process/exit_codes.h"
#include "millrace/base/process/process_usage.h"
#include "millrace/base/process/stop_signals.h"
#include "millrace/base/text.h"
#include "millrace/dataflow/detection/count_objects.h"
#include "millrace/dataflow/engine/order.h"
#include "millrace/dataflow/engine/source.h"
#include "millrace/dataflow/largest_batch.h"
#include "millrace/dataflow/sources/train_data.h"
#include "millrace/models/detector/make_detector.h"
#include "millrace/trainer/checkpoint/shared_checkpoint.h"
#include "millrace/trainer/edit_journal.h"
#include "millrace/trainer/failed_steps.h"
#include "millrace/trainer/run/config_changes.h"
#include "millrace/trainer/run/data_facts.h"
#include "millrace/trainer/run/divergence.h"
#include "millrace/trainer/run/published_accuracy.h"
#include "millrace/trainer/run/run_facts.h"
#include "millrace/trainer/run/run_folder.h"
#include "millrace/trainer/run/run_record.h"
#include "millrace/trainer/run/run_recorder.h"
#include "millrace/trainer/run/trained_weights.h"
#include "millrace/trainer/status/status_writer.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

void tell_of_ranks(const Cluster& cluster, const nlohmann::ordered_json& ranks) {
  if (cluster.size() == 1) return;
  for (const auto& rank : ranks)
    spdlog::info("{}: local rank {} of {}, {}, {} of maths",
                 cluster.name(rank.at("rank").get<std::int64_t>()),
                 rank.at("local_rank").get<int>(), rank.at("local_size").get<int>(),
                 rank.at("device").get<std::string>(),
                 counted(rank.at("maths_threads").get<int>(), "thread"));
}

/// Asks the detector whether it can learn from the data; the chief logs its warnings. Throws
/// ConfigError if it refuses.
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
  for (const auto& warning : warnings) spdlog::warn(warning);
}

/// Throws ConfigError if a callback uses the weights of one that keeps none.
void check_weights_of(const Callback& callback, const std::string& name, const Recipe& recipe) {
  const auto* user = dynamic_cast<const UsesWeights*>(&callback);
  const auto of = user ? user->weights_of() : "";
  if (of.empty()) return;
  std::vector<std::string> keepers;
  for (const auto& other : recipe.callbacks)
    if (callbacks().at(other.type).create.keeps_weights) keepers.push_back(other.name);
  if (std::ranges::count(keepers, of)) return;
  const auto table = std::ranges::find(recipe.callbacks, name, &RecipeCallback::name)->table;
  const auto* key = table.find("weights");
  throw ConfigError(fmt::format(
      "{}: callbacks.{} takes the weights of '{}', but no callback of this run that keeps weights "
      "has this name{}",
      (key ? key->origin : table.origin).text(), name, of,
      keepers.empty() ? "; [callbacks.average_weights] would" : suggestion(of, keepers)));
}

/// Samples per epoch, if known here.
std::optional<std::int64_t> epoch_size(const TrainData& train) {
  if (!train.source) return std::nullopt;
  return Order(train.source->size(), train.source->repeats(), 0, {}).size();
}

/// Where each value of the configuration came from, as JSON.
std::string origins_text(const Config& tree) {
  nlohmann::ordered_json origins = nlohmann::ordered_json::object();
  for (const auto& [key, value] : leaves(tree)) origins[key] = value->origin.text();
  return origins.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

/// The largest batch of the whole run; nullopt if unknown.
std::optional<LargestBatch> largest_batch(const Recipe& recipe, const TrainData& data,
                                          std::int64_t ranks) {
  const auto images = static_cast<double>(recipe.data.batch_size * ranks);
  const auto whole = data.source ? recipe.train.epochs * turns(*data.source) / images : 0;
  const auto most = static_cast<double>(recipe.train.max_steps * recipe.optimizer.accumulate);
  const auto batches = std::ceil(most > 0 ? std::min(whole, most) : whole);
  return largest_train_batch(recipe.data, recipe.stages, data,
                             static_cast<std::uint64_t>(recipe.train.seed), ranks,
                             static_cast<std::int64_t>(batches));
}

/// The validation split. nullopt without one, or if it cannot be opened and no callback needs it.
std::optional<EvalData> open_validation(const Session& session, const TrainData& train,
                                        const CallbackList& callbacks) {
  auto options = session.recipe().data;
  if (options.val.empty()) return std::nullopt;
  options.classes = train.classes;
  try {
    return session.passes_over(open_split(options, options.val));
  } catch (const Error& problem) {
    if (callbacks.need_validation()) throw;
    spdlog::info("without the validation split, which no callback of this run needs: {}",
                 problem.what());
    return std::nullopt;
  }
}

bool has_live_edit(const Recipe& recipe) {
  return std::ranges::count(recipe.callbacks, "live_edit", &RecipeCallback::type) > 0;
}

/// Warns of edits by [callbacks.live_edit] after the checkpoint if this run would not repeat them.
void warn_of_lost_edits(const fs::path& folder, std::int64_t step, const Recipe& recipe) try {
  if (has_live_edit(recipe)) return;
  const auto lost = std::ranges::count_if(read_edits(folder),
                                          [&](const Edit& edit) { return edit.after_step > step; });
  if (lost > 0)
    spdlog::warn(
        "{}: {} after step {} will not be repeated, since callbacks.live_edit is not part "
        "of this run",
        (folder / "edits.jsonl").string(), counted(lost, "edit"), step);
} catch (const Error& problem) {
  spdlog::warn(problem.what());
}

/// Logs what another number of ranks than that of the start `last` means for a step.
void tell_of_changed_ranks(const nlohmann::ordered_json& last, const TrainPlan& plan) {
  const auto ranks = last.find("ranks");
  const auto before = ranks == last.end() ? 0 : std::ssize(*ranks), now = plan.cluster.size() * 1L;
  if (before == 0 || before == now) return;
  const auto images = plan.images_per_step / now * before;
  spdlog::info(
      "changed since the checkpoint: ranks: was {}, is {}: a step takes {} instead of {}, at a "
      "learning rate of {:.4g} instead of {:.4g}",
      before, now, counted(plan.images_per_step, "image"), images,
      plan.optimizer.scaled_lr(plan.images_per_step), plan.optimizer.scaled_lr(images));
}

std::string standing(const Position& at) {
  return fmt::format("step {}, {:.2f} epochs", at.step, at.progress);
}

}  // namespace

CallbackList make_callbacks(const Recipe& recipe) {
  CallbackList list;
  for (const auto& [name, type, table, when] : recipe.callbacks) {
    const auto& entry = callbacks().at(type, table.origin);
    auto callback =
        blaming(callbacks().title(entry), "its factory", [&] { return entry.create(table, name); });
    check_weights_of(*callback, name, recipe);
    list.add(name, std::move(callback), when, entry.plugin);
  }
  list.check_metrics();
  return list;
}

namespace {

/// One start of a run, from `began` on. `diverged`: how the one before ended, for this one to take
/// another way.
RunEnd start_training(const Session& session, const RunOptions& options, Clock::time_point began,
                      const std::optional<TrainEnd>& diverged) {
  const auto& recipe = session.recipe();
  const auto& cluster = session.cluster();
  auto callbacks = make_callbacks(recipe);
  auto own_recorder = std::make_unique<RunRecorder>(recipe, cluster, began, diverged.has_value());
  auto& recorder = *own_recorder;
  callbacks.add(kRecordFile, std::move(own_recorder));
  // Only the chief sees the run's folder.
  const auto mine = identity_of(options.config_file, recipe.tree);
  std::optional<RunFolder> own;
  std::optional<RunStart> start;
  if (cluster.is_chief() && options.resumed) start.emplace(own.emplace(*options.resumed), mine);
  fs::path folder = cluster.broadcast("run to resume", own ? own->path().string() : "");
  const bool is_new = folder.empty();
  auto checkpoint = is_new ? std::nullopt : newest_checkpoint_of(folder, cluster);
  if (diverged) {
    const auto change = take_another_way(checkpoint->at, diverged->at, recipe.train);
    if (cluster.is_chief())
      spdlog::warn("{}{}", change,
                   has_live_edit(recipe) ? edits_text(folder, diverged->at.step) : "");
  }

  const auto train = open_train_data(recipe.data, recipe.sources);
  if (cluster.is_chief() && train.source) spdlog::info(data_summary(*train.source, train.classes));
  if (cluster.is_chief() && !checkpoint) check_initial_weights(recipe);
  const auto validation = open_validation(session, train, callbacks);

  const auto detector = session.make_detector(train.classes);
  const auto& parameters = detector->parameters();
  spdlog::info("{}: {} classes, {:.1f} M values in {} tensors, {:.1f} M of them trained",
               recipe.model_type, train.classes.size(),
               static_cast<double>(parameters.count()) / 1e6, parameters.size(),
               static_cast<double>(parameters.trainable_count()) / 1e6);
  auto ranks = rank_facts(cluster, session.device().str());
  tell_of_ranks(cluster, ranks);
  const bool starts_random = recipe.weights.empty() && !checkpoint;
  check_training(*detector, train, starts_random, recipe.train.micro_batch > 0, cluster);
  nlohmann::ordered_json facts;  // the chief's
  if (cluster.is_chief()) facts = data_facts(recipe, train, validation ? &*validation : nullptr);
  if (checkpoint) {
    const auto was = parse_config(checkpoint->config, "the checkpoint's config.toml");
    check_resume(*checkpoint, {.config = recipe.tree,
                               .classes = train.classes,
                               .epoch_size = epoch_size(train).value_or(checkpoint->epoch_size),
                               .model = *detector});
    if (!diverged)
      if (const auto change = count_returns_anew(*checkpoint, recipe.tree);
          !change.empty() && cluster.is_chief())
        spdlog::info(change);
    const bool is_done = has_all_steps(checkpoint->at, recipe.train) && start &&
                         start->was_done_after(checkpoint->at.step);
    if (cluster.broadcast("whether the run is done", is_done ? "done" : "") == "done") {
      spdlog::info("{} is done, after {}: nothing is left to do. A larger train.epochs{} goes on",
                   folder.string(), standing(checkpoint->at),
                   recipe.train.max_steps > 0 ? " or train.max_steps" : "");
      return {{checkpoint->at, "", false}, folder};
    }
    check_resumed_weights(was, recipe);
    if (const auto failed = start ? start->diverged_at() : 0; failed > 0 && !recipe.train.returns())
      go_further_back(checkpoint->at, failed);
    if (start) warn_of_lost_edits(folder, checkpoint->at.step, recipe);
    if (start) check_same_data(start->last(), facts);
  } else if (cluster.is_chief()) {  // the others get them from it
    session.load_initial_weights(*detector, train.classes);
  }

  auto plan = session.plan(*detector, train);
  if (cluster.is_chief())
    for (const auto& warning : published_warnings(recipe, plan.images_per_step))
      spdlog::warn(warning);
  if (start && checkpoint) tell_of_changed_ranks(start->last(), plan);
  if (cluster.local_rank() == 0) plan.largest_batch = largest_batch(recipe, train, cluster.size());
  plan.validation = validation ? &*validation : nullptr;
  plan.metadata = to_metadata(
      model_card(recipe, train.classes,
                 validation ? validation->split.category_ids : std::vector<std::int64_t>()));
  plan.is_return = diverged.has_value();
  Trainer trainer(std::move(plan), std::move(callbacks));
  if (checkpoint) trainer.resume(*checkpoint);
  trainer.prepare();

  TrainEnd end;
  bool has_begun = false;
  try {
    if (cluster.is_chief()) {
      if (is_new) start.emplace(own.emplace(make_run_folder(options.output, mine.name)), mine);
      own->keep_log();
      write_file_atomically(own->path() / "config.toml", to_toml(recipe.tree));
      write_file_atomically(own->path() / "origins.json", origins_text(recipe.tree));
      const auto price = recipe.train.price_per_hour;
      start->begin(trainer.at().step, options.config_file, options.program,
                   {{"data", std::move(facts)},
                    {"weights", weights_facts(recipe.weights)},
                    {"price_per_hour", price > 0 ? nlohmann::ordered_json(price) : nullptr},
                    {"ranks", std::move(ranks)}},
                   recorder.targets());
      recorder.record_in(*start);
      spdlog::info("run folder {}", own->path().string());
    }
    folder = cluster.broadcast("run folder", own ? own->path().string() : "");
    trainer.set_folder(folder);
    if (checkpoint) spdlog::info("resuming after {}", standing(checkpoint->at));
    has_begun = true;
    StatusWriter status(cluster, trainer.activity(), recipe.data, folder,
                        start ? start->number() : 0);
    try {
      end = trainer.run();
    } catch (const std::exception& problem) {
      status.end("failed", problem.what());
      throw;
    }
    status.end(end.stop_reason.empty() ? "done" : "stopped", end.stop_reason);
  } catch (const Diverged& ended) {  // on the chief
    start->end({ended.at, kDivergence}, recorder.use());
    spdlog::warn("{}{}", give_up_for_resume(folder / "checkpoints", ended.at),
                 has_live_edit(recipe) ? edits_text(folder, ended.at.step) : "");
    throw;
  } catch (const std::exception& problem) {
    // A start that fails leaves no folder.
    const bool is_wrong = dynamic_cast<const ConfigError*>(&problem) && trainer.at().step == 0;
    if (own && is_new && (!has_begun || is_wrong)) own->remove();
    throw;
  }
  const auto use = recorder.whole_use();
  if (start) start->end(end, use);
  if (end.diverged) {
    if (cluster.is_chief())
      give_up_diverged_checkpoints(folder / "checkpoints", end.at, recipe.train);
    return {end, folder};
  }
  if (start)
    spdlog::info("used {}{}", start->used().text(),
                 start->number() > 1 ? fmt::format(", over {} starts", start->number()) : "");
  log_result(fmt::format("{} after {}; everything lies in {}",
                         end.stop_reason.empty() ? "done" : "stopped by " + end.stop_reason,
                         standing(end.at), folder.string()));
  ExitAtSignal::work_is_done(end.signalled ? kStoppedEarly : kDone);
  return {end, folder};
}

}  // namespace

RunEnd run_training(const Session& session, const RunOptions& options) {
  const auto age = std::chrono::duration<double>(process_age());
  const auto born = Clock::now() - std::chrono::duration_cast<Clock::duration>(age);
  auto end = start_training(session, options, born, {});
  while (end.training.diverged) {
    auto again = options;
    again.resumed = end.folder;
    end = start_training(session, again, Clock::now(), end.training);
  }
  return end;
}

}  // namespace millrace
