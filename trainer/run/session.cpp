#include "millrace/trainer/run/session.h"

#include <ATen/Context.h>
#include <fmt/format.h>

#include <bit>
#include <cstdlib>
#include <utility>

#include "millrace/base/digest.h"
#include "millrace/base/errors.h"
#include "millrace/dataflow/detection_flows.h"
#include "millrace/dataflow/sources/train_data.h"
#include "millrace/models/detector/precision.h"
#include "millrace/models/detector/restore.h"
#include "millrace/models/weights/weights.h"
#include "millrace/trainer/cluster/gpu_address.h"
#include "millrace/trainer/cluster/share_values.h"
#include "millrace/trainer/optimizer/parameter_groups.h"
#include "millrace/trainer/run/config_changes.h"
#include "millrace/trainer/run/device.h"

namespace millrace {
namespace {

void check_same_program(const Cluster& cluster) {
  const auto all = cluster.gather("version", MILLRACE_VERSION);
  for (std::size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank] != all[0])
      throw ConfigError(fmt::format(
          "{} has trainer {}, {} has {}; all ranks must have the same version",
          cluster.name(static_cast<std::int64_t>(rank)), all[rank], cluster.name(0), all[0]));
}

void check_same_configuration(const Cluster& cluster, const Config& mine) {
  const auto text = to_toml(mine);
  const auto digests =
      cluster.gather("digest of the configuration", hex(digest(text.data(), text.size())));
  for (std::size_t rank = 1; rank < digests.size(); ++rank) {
    if (digests[rank] == digests[0]) continue;
    // All ranks reach this with the same `rank`.
    const auto texts = cluster.gather("configuration", text);
    const auto name = cluster.name(static_cast<std::int64_t>(rank));
    const auto changes = config_changes(parse_config(texts[0], "the configuration of rank 0"),
                                        parse_config(texts[rank], "the configuration of " + name));
    if (changes.empty()) continue;  // only the order differs
    const auto& first = changes.front();
    throw ConfigError(
        fmt::format("{} has another configuration than {}: {} = {} instead of {}; all ranks must "
                    "have the same configuration",
                    name, cluster.name(0), first.key, first.is, first.was));
  }
}

/// Throws ConfigError if the ranks are not whole branches of the tree that sums micro-batches.
void check_is_tree(const TrainOptions& train, std::int64_t ranks) {
  if (train.micro_batch == 0 || std::has_single_bit(static_cast<std::uint64_t>(ranks))) return;
  throw ConfigError(
      fmt::format("train.micro_batch = {} requires 1, 2, 4, 8 ... ranks, not {}; start such a "
                  "number, or set it to 0",
                  train.micro_batch, ranks));
}

/// Prepares the rank for joint work; called before the compute library counts its processors.
const Cluster& begun_together(const Recipe& recipe, const Cluster& cluster) {
  cluster.set_timeout(recipe.train.rank_timeout.seconds);
  if (cluster.size() == 1) return cluster;
  check_same_program(cluster);
  check_same_configuration(cluster, recipe.tree);
  check_is_tree(recipe.train, cluster.size());
  bind_to_share(cluster,
                recipe.train.device == "cuda" ? gpu_address(cluster.local_rank()) : std::string());
  return cluster;
}

/// Applies the arithmetic settings and then opens the device, which reads some of them at its
/// start.
at::Device prepared(const TrainOptions& train, std::int64_t local_rank) {
  auto& libtorch = at::globalContext();
  libtorch.setDeterministicAlgorithms(train.deterministic, /*warn_only=*/true);
  // Takes time and does not affect results.
  libtorch.setDeterministicFillUninitializedMemory(false);
  if (train.device == "cuda") {
    // cuBLAS is only reproducible with a separate workspace for each stream.
    if (train.deterministic) ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
    choose_products(train.precision == FloatType::tf32);
  }
  return open_device(train.device, local_rank);
}

}  // namespace

Session::Session(Recipe recipe, const Cluster& cluster)
    : recipe_(std::move(recipe)),
      cluster_(begun_together(recipe_, cluster)),
      threads_(recipe_.train.threads, recipe_.data.threads),
      device_(prepared(recipe_.train, cluster.local_rank())) {
  make_batches_for(device_);
}

std::unique_ptr<Detector> Session::make_detector(const std::vector<std::string>& classes) const {
  const auto seed = static_cast<std::uint64_t>(recipe_.train.seed);
  auto detector =
      millrace::make_detector(recipe_.model_type, recipe_.model, {classes, seed, device_});
  for (const auto& parameter : detector->parameters())
    if (parameter.value.device() != device_)
      throw ConfigError(fmt::format("train.device = \"{}\": {} does not support it: '{}' is on {}",
                                    recipe_.train.device, detector->title(), parameter.name,
                                    parameter.value.device().str()));
  detector->detect_in(precision_type(recipe_.train.eval_precision));
  return detector;
}

std::unique_ptr<Detector> Session::make_initial_detector(
    const std::vector<std::string>& classes) const {
  auto detector = make_detector(classes);
  load_initial_weights(*detector, classes);
  return detector;
}

void Session::load_initial_weights(Detector& detector,
                                   const std::vector<std::string>& classes) const {
  const auto& file = recipe_.weights;
  if (file.empty()) return;
  const auto& parameters = detector.parameters();
  const auto force_weights = initial_force_weights(recipe_);
  const auto report = load_weights(parameters, file, {classes, force_weights});
  detector.parameters_changed();
  log_report(report, parameters, file);
  check_frozen_loaded(report, frozen_parameters(parameters, recipe_.optimizer), file,
                      force_weights);
}

std::unique_ptr<Detector> Session::make_trained_detector(const std::vector<std::string>& classes,
                                                         const TrainedWeights& weights) const {
  auto detector = make_detector(classes);
  if (cluster_.is_chief()) {
    const auto& parameters = detector->parameters();
    const auto report =
        load_weights(parameters, weights.file, {.force_weights = weights.force_weights});
    log_report(report, parameters, weights.file);
    check_all_loaded(report, parameters.size(), weights.file);
  }
  broadcast_values(cluster_, named_values(*detector), "the model");
  detector->parameters_changed();
  return detector;
}

TrainPlan Session::plan(Detector& detector, const TrainData& data, Observe observe) const {
  const auto start = [this, &data, observe = std::move(observe)](const Cursor& from) {
    auto flow =
        start_train_flow(recipe_.data, recipe_.stages, data,
                         static_cast<std::uint64_t>(recipe_.train.seed), share_of(cluster_), from);
    return upload_ahead(observe ? observe(std::move(flow)) : std::move(flow), device_);
  };
  return {.model = detector,
          .train = recipe_.train,
          .optimizer = recipe_.optimizer,
          .schedule = recipe_.schedule,
          .images_per_step = recipe_.images_per_step() * cluster_.size(),
          .start_data = start,
          .make_model = [this, &data] { return make_detector(data.classes); },
          .folder = {},
          .config = to_toml(recipe_.tree),
          .classes = data.classes,
          .cluster = cluster_};
}

EvalData Session::passes_over(const DataSplit& split, Observe observe) const {
  return {.split = split,
          .start = [options = recipe_.data, split, device = device_,
                    observe = std::move(observe)](Share share) {
            auto flow = start_eval_flow(options, split, share);
            return upload_ahead(observe ? observe(std::move(flow)) : std::move(flow), device);
          }};
}

}  // namespace millrace
