#include "millrace/trainer/run/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "millrace/base/clock.h"
#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/base/process/exit_codes.h"
#include "millrace/base/process/process_usage.h"
#include "millrace/base/process/stop_signals.h"
#include "millrace/base/text.h"
#include "millrace/trainer/edit_journal.h"
#include "millrace/trainer/failed_steps.h"
#include "millrace/trainer/run/divergence.h"
#include "millrace/trainer/run/training_start.h"
#include "millrace/trainer/status/status_writer.h"

namespace millrace {
namespace {

/// Throws ConfigError if a callback uses the weights of a callback that keeps none.
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
  throw ConfigError(
      fmt::format("{}: callbacks.{} uses the weights of '{}', which is not a callback of this run "
                  "that keeps weights{}",
                  (key ? key->origin : table.origin).text(), name, of,
                  keepers.empty() ? "; [callbacks.average_weights] keeps an average"
                                  : suggestion(of, keepers)));
}

std::string standing(const Position& at) {
  return fmt::format("step {}, {:.2f} epochs", at.step, at.progress);
}

}  // namespace

CallbackList make_callbacks(const Recipe& recipe) {
  CallbackList list;
  for (const auto& [name, type, table, when] : recipe.callbacks) {
    const auto& entry = callbacks().at(type, table.origin);
    auto callback = with_component_name(callbacks().title(entry), "its factory",
                                        [&] { return entry.create(table, name); });
    check_weights_of(*callback, name, recipe);
    list.add(name, std::move(callback), when, entry.plugin);
  }
  list.check_metrics();
  return list;
}

namespace {

/// Executes one start of a run. `began`: its time. `diverged`: end of the previous start, after
/// which this one continues differently; nullopt if there was none.
RunEnd start_training(const Session& session, const RunOptions& options, Clock::time_point began,
                      const std::optional<TrainEnd>& diverged) {
  const auto& recipe = session.recipe();
  const auto& cluster = session.cluster();
  TrainingStart start(session, options, began, diverged);
  start.take();
  const auto& folder = start.folder();
  const auto& checkpoint = start.checkpoint();
  if (start.is_done()) {
    log_info("{} is already done, after {}; raise train.epochs{} to continue", folder.string(),
             standing(checkpoint->at), recipe.train.max_steps > 0 ? " or train.max_steps" : "");
    return {{checkpoint->at, "", false}, folder};
  }
  if (checkpoint) log_info("resuming after {}", standing(checkpoint->at));
  auto& trainer = start.trainer();
  auto& recorder = start.recorder();
  auto* record = start.record();

  TrainEnd end;
  try {
    StatusWriter status(cluster, trainer.activity(), recipe.data, folder,
                        record ? record->number() : 0);
    try {
      end = trainer.run();
    } catch (const std::exception& problem) {
      status.end("failed", problem.what());
      throw;
    }
    status.end(end.stop_reason.empty() ? "done" : "stopped", end.stop_reason);
  } catch (const Diverged& ended) {  // on rank 0
    record->end({ended.at, kDivergence}, recorder.use());
    log_warning("{}{}", remove_diverged_for_resume(folder / "checkpoints", ended.at),
                has_live_edit(recipe) ? edits_text(folder, ended.at.step) : "");
    throw;
  } catch (const ConfigError&) {  // in the first step: handled like a start that fails
    if (start.is_new() && trainer.at().step == 0) start.remove_folder();
    throw;
  }
  const auto use = recorder.whole_use();
  if (record) record->end(end, use);
  if (end.diverged) {
    if (cluster.is_chief())
      remove_diverged_checkpoints(folder / "checkpoints", end.at, recipe.train);
    return {end, folder};
  }
  if (record)
    log_info("used {}{}", record->record().used().value().text(),
             record->number() > 1 ? fmt::format(", in {} starts", record->number()) : "");
  log_result(fmt::format("{} after {}; results are in {}",
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
