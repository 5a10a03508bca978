// trainer eval: detect over the validation split and print the COCO figures.
#include <ATen/Context.h>
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "millrace/base/text.h"
#include "millrace/cli/command.h"
#include "millrace/cli/config_arguments.h"
#include "millrace/cli/start_together.h"
#include "millrace/cli/trained_detector.h"
#include "millrace/trainer/cluster/processors.h"
#include "millrace/trainer/cluster/share_values.h"
#include "millrace/trainer/cluster/threads.h"
#include "millrace/trainer/detector/restore.h"
#include "millrace/trainer/run/run.h"

namespace millrace::cli {
namespace {

struct EvalArguments {
  ConfigArguments config;
  WeightArguments weights;
  std::filesystem::path out;
  bool json = false;
};

Json to_json(const coco::Evaluation& evaluation) {
  return {{"stats", evaluation.stats},
          {"category_ids", evaluation.category_ids},
          {"category_ap", evaluation.category_ap}};
}

Json to_json(const DetectorScores& scores) {
  Json json = {{"bbox", to_json(scores.boxes)}};
  if (scores.masks) json["segm"] = to_json(*scores.masks);
  json["images"] = scores.images;
  json["detections"] = scores.found;
  json["seconds"] = scores.seconds;
  return json;
}

/// Images of the split that could not be read.
std::int64_t left_out(const DetectorScores& scores, const DataSplit& split) {
  return std::ssize(split.annotations->images) - scores.images;
}

int eval(const EvalArguments& arguments, const Cluster& cluster) {
  const auto recipe = arguments.config.load();
  bind_to_share(cluster, /*near_gpus=*/at::hasCUDA());
  const Threads threads(recipe.train.threads, recipe.data.threads);
  start_together(recipe, cluster);
  const auto card = checked_card(arguments.weights, recipe, cluster);
  auto data = open_validation(recipe, recipe.data.classes);
  if (card) data.split = labelled_by(*card, data.split, recipe, arguments.weights);
  const auto detector = cluster.is_chief()
                            ? trained_detector(recipe, data.split.classes, arguments.weights)
                            : build_detector(recipe, data.split.classes, cluster.local_rank());
  take_chiefs_values(cluster, named_values(*detector), "the model");
  tell_parameters_changed(*detector);
  const auto scores =
      evaluate_detector(*detector, data, {.keep_detections = !arguments.out.empty()}, cluster);
  if (!cluster.is_chief()) return kDone;
  if (!arguments.out.empty()) coco::write_detections(arguments.out, scores->detections);
  const auto lost = left_out(*scores, data.split);
  if (arguments.json) {
    auto json = to_json(*scores);
    json["left_out"] = lost;
    print(json);
  } else {
    fmt::print("{}\n{} in {}{}\n", score_tables(*scores), counted(scores->images, "image"),
               duration_text(scores->seconds),
               lost > 0 ? fmt::format("; {} left out, scored as without detections",
                                      counted(lost, "image"))
                        : "");
  }
  return kDone;
}

}  // namespace

void add_eval(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("eval", "Detect over the validation split and print the 12 COCO figures");
  auto arguments = std::make_shared<EvalArguments>();
  arguments->config.add_to(*command);
  arguments->weights.add_to(*command);
  command->add_option("--out", arguments->out, "also write the detections, as a COCO results file")
      ->type_name("FILE");
  add_json_flag(*command, arguments->json);
  add_examples(
      *command,
      {"trainer eval configs/maskrcnn.toml --weights runs/maskrcnn/checkpoints/latest",
       "trainer eval configs/maskrcnn.toml --weights model.safetensors --json --out results.json"});
  command->callback([=, &action] {
    action = [=] {
      return Cluster::run([&](const Cluster& cluster) { return eval(*arguments, cluster); });
    };
  });
}

}  // namespace millrace::cli
