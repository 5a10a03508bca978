#include "trainer/run.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "base/errors.h"
#include "base/file_lock.h"
#include "base/files.h"
#include "base/log.h"
#include "base/text.h"
#include "dataflow/data_summary.h"
#include "dataflow/detection.h"
#include "dataflow/detection_sources.h"
#include "dataflow/order.h"
#include "trainer/config_changes.h"
#include "trainer/device.h"
#include "trainer/model_card.h"
#include "trainer/processors.h"
#include "trainer/run_folder.h"
#include "trainer/shared_checkpoint.h"
#include "trainer/threads.h"
#include "trainer/upload.h"
#include "trainer/weights.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

/// The folder of a run, of which this process alone writes while this lives; the log also goes to its log.txt.
class OwnFolder {
 public:
  explicit OwnFolder(const fs::path& folder) : lock_(made(folder) / "lock") {
    log_to_file(folder / "log.txt");
  }
  ~OwnFolder() { log_to_file({}); }

 private:
  static const fs::path& made(const fs::path& folder) {
    make_writable_folder(folder);
    return folder;
  }

  FileLock lock_;
};

/// Where each rank runs, and with what.
void tell_of_ranks(const Cluster& cluster, const Detector& detector) {
  if (cluster.size() == 1) return;
  const auto& parameters = detector.parameters();
  const auto device = parameters.size() > 0 ? parameters.begin()->value.device().str() : "cpu";
  const auto all = cluster.gather(
      "where ranks run",
      fmt::format("{}: local rank {} of {}, {}, {} of maths", cluster.name(), cluster.local_rank(),
                  cluster.local_size(), device, counted(at::get_num_threads(), "thread")));
  for (const auto& one : all) spdlog::info(one);
}

void tell_of(const Parameters& parameters, const std::string& name, std::size_t classes) {
  spdlog::info("{}: {} classes, {:.1f} M values in {} tensors, {:.1f} M of them trained", name,
               classes, static_cast<double>(parameters.count()) / 1e6, parameters.size(),
               static_cast<double>(parameters.trainable_count()) / 1e6);
}

/// Samples of an epoch, where they are known here.
std::optional<std::int64_t> epoch_size(const TrainData& train) {
  if (!train.source) return std::nullopt;
  return Order(train.source->size(), train.source->repeats(), 0, {}).size();
}

/// On weights that training starts from.
Insistence insistence(const Recipe& recipe) {
  return {recipe.force_weights, "model.force_weights = true"};
}

/// What checkpoints of a run say of their weights.
ModelCard card_of(const Recipe& recipe, const TrainData& train,
                  const std::optional<EvalData>& validation) {
  return model_card(recipe, train.classes,
                    validation ? validation->split.category_ids : std::vector<std::int64_t>());
}

}  // namespace

void use_deterministic_maths(bool deterministic) {
  at::globalContext().setDeterministicAlgorithms(deterministic, /*warn_only=*/true);
  at::globalContext().setDeterministicFillUninitializedMemory(
      false);  // costs time, changes nothing
}

void check_initial_weights(const Recipe& recipe) {
  const auto& file = recipe.weights;
  if (file.empty()) return;
  std::error_code problem;
  if (!fs::exists(file, problem))
    throw ConfigError(
        fmt::format("model.weights: there is no file '{}'; say where yours are, or '' to start "
                    "from random values",
                    file));
  const auto card = read_card(file);
  if (!card) return;
  std::vector<std::string> lines;
  for (const auto& one : contradictions(*card, recipe)) {
    if (one.decides == OfWeights::tensors)
      spdlog::info("{}: {}", file, one.text());
    else
      lines.push_back(one.text());
  }
  if (lines.empty()) return;
  insistence(recipe).object<ConfigError>(
      fmt::format("{} contradicts this configuration:\n  {}\nset {} as the weights have it", file,
                  fmt::join(lines, "\n  "), lines.size() == 1 ? "the key" : "these keys"));
}

void load_initial_weights(Detector& detector, const Recipe& recipe,
                          const std::vector<std::string>& classes) {
  const auto& file = recipe.weights;
  if (file.empty()) return;
  const auto report = load_weights(detector.parameters(), file, {classes, insistence(recipe)});
  tell_parameters_changed(detector);
  log_report(report, detector.parameters().size(), file);
}

std::unique_ptr<Detector> build_detector(const Recipe& recipe,
                                         const std::vector<std::string>& classes,
                                         std::int64_t local_rank) {
  const auto seed = static_cast<std::uint64_t>(recipe.train.seed);
  const auto device = open_device(recipe.train.device, local_rank);
  auto detector = make_detector(recipe.model_name, recipe.model, {classes, seed, device});
  for (const auto& parameter : detector->parameters())
    if (parameter.value.device() != device)
      throw ConfigError(fmt::format("train.device = \"{}\": {} is not made for it: '{}' lies on {}",
                                    recipe.train.device, detector->title, parameter.name,
                                    parameter.value.device().str()));
  return detector;
}

EvalData open_validation(const Recipe& recipe, const std::vector<std::string>& classes) {
  auto data = recipe.data;
  data.classes = classes;
  const auto split = open_split(data, data.val);
  return {.split = split,
          .start = [data, split](Share share) { return start_eval_flow(data, split, share); }};
}

CallbackList make_callbacks(const Recipe& recipe) {
  CallbackList list;
  for (const auto& [name, use, table, when] : recipe.callbacks) {
    const auto& entry = callbacks().at(use, table.origin);
    list.add(name,
             blaming(callbacks().title(entry), "its factory", [&] { return entry.create(table); }),
             when, entry.plugin);
  }
  list.check_metrics();
  return list;
}

RunEnd run_training(const Recipe& recipe, const RunOptions& options, const Cluster& cluster) {
  bind_to_share(cluster, /*near_gpus=*/at::hasCUDA());
  const Threads threads(recipe.train.threads, recipe.data.threads);
  use_deterministic_maths(recipe.train.deterministic);

  const auto device = open_device(recipe.train.device, cluster.local_rank());
  make_batches_for(device);
  auto callbacks = make_callbacks(recipe);
  const auto train = open_train_data(recipe.data, recipe.sources);
  if (cluster.is_chief() && !options.resume) check_initial_weights(recipe);
  std::optional<EvalData> validation;
  if (!recipe.data.val.empty()) validation = open_validation(recipe, train.classes);

  const fs::path output = options.output.empty() ? fs::path(recipe.train.output) : options.output;
  fs::path folder;
  std::optional<OwnFolder> own;
  if (cluster.is_chief()) {
    const auto newest = options.resume ? newest_run_folder(output) : std::nullopt;
    folder = newest ? *newest : make_run_folder(output, options.name);
    own.emplace(folder);
    if (options.resume && !newest)
      spdlog::info("no run in {} to resume: starting one", output.string());
    spdlog::info("run folder {}", folder.string());
  }
  folder = cluster.broadcast("run folder", folder.string());
  const auto checkpoint =
      options.resume ? newest_checkpoint(folder / "checkpoints", cluster) : std::nullopt;
  const auto config = to_toml(recipe.tree);
  const auto detector = build_detector(recipe, train.classes, cluster.local_rank());
  if (own && train.source) spdlog::info(data_summary(*train.source, train.classes));
  tell_of(detector->parameters(), recipe.model_name, train.classes.size());
  tell_of_ranks(cluster, *detector);
  if (checkpoint)
    check_resume(*checkpoint, {.config = recipe.tree,
                               .classes = train.classes,
                               .epoch_size = epoch_size(train).value_or(checkpoint->epoch_size),
                               .model = *detector});
  else if (cluster.is_chief()) {  // the others get them from it
    if (options.resume) check_initial_weights(recipe);
    load_initial_weights(*detector, recipe, train.classes);
  }
  if (own) write_file_atomically(folder / "config.toml", config);

  const auto seed = static_cast<std::uint64_t>(recipe.train.seed);
  Trainer trainer(
      {.model = *detector,
       .train = recipe.train,
       .optimizer = recipe.optimizer,
       .schedule = recipe.schedule,
       .images_per_step = recipe.images_per_step() * cluster.size(),
       .start_data =
           [&](const Cursor& start) {
             return upload_ahead(start_train_flow(recipe.data, recipe.stages, train, seed,
                                                  {cluster.rank(), cluster.size()}, start),
                                 device);
           },
       .validation = validation ? &*validation : nullptr,
       .make_model = [&] { return build_detector(recipe, train.classes, cluster.local_rank()); },
       .folder = folder,
       .config = config,
       .classes = train.classes,
       .metadata = to_metadata(card_of(recipe, train, validation)),
       .cluster = cluster},
      std::move(callbacks));
  if (checkpoint) {
    trainer.resume(*checkpoint);
    spdlog::info("resuming after step {}, {:.2f} epochs", checkpoint->at.step,
                 checkpoint->at.progress);
  }
  const auto end = trainer.run();
  spdlog::info("{} after step {}, {:.2f} epochs; everything lies in {}",
               end.stop_reason.empty() ? "done" : "stopped by " + end.stop_reason, end.at.step,
               end.at.progress, folder.string());
  return {end, folder};
}

}  // namespace millrace
