// trainer eval: detects on the validation split and prints the COCO metrics.
#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/base/progress_bar.h"
#include "millrace/base/text.h"
#include "millrace/cli/arguments.h"
#include "millrace/cli/command.h"
#include "millrace/cli/predict/prediction.h"
#include "millrace/cli/voc_output.h"
#include "millrace/models/weights/formats.h"
#include "millrace/models/weights/sealed_folder.h"
#include "millrace/trainer/evaluation/running_ap.h"
#include "millrace/trainer/run/session.h"
#include "millrace/trainer/run/trained_model.h"

namespace millrace::cli {
namespace {

constexpr double kApPause = 3;  // seconds between updates of the AP so far

struct EvalArguments {
  ModelArguments model;
  std::filesystem::path data;
  std::filesystem::path out;
  std::uint32_t max_detections = 0;
  bool boundary = false, proposals = false, voc = false, json = false;
};

Json to_json(const DetectorScores& scores) {
  auto json = scores_json(scores);
  json["limit"] = limit_json(scores.limit);
  json["detections"] = scores.found;
  json["seconds"] = scores.seconds;
  return json;
}

/// Returns true if detections in several views of an image are merged.
bool sees_several_views(const Config& model) {
  const auto* flip = model.find_path("test.aug_flip");
  const auto* scales = model.find_path("test.aug_scales");
  return (flip && value_text(*flip) == "true") || (scales && value_text(*scales) != "[1.0]");
}

/// Returns the configuration of a model's training; empty if it was not recorded.
Config trained_config(const std::string& model) {
  const auto file = weight_file(model);
  const auto origin = origin_of(file);
  return origin ? parse_config(origin->config, file.string()) : Config();
}

/// Copies keys from a model's training configuration if `tree` does not set them.
void take_keys(Config& tree, const Config& trained, const std::vector<const char*>& keys) {
  for (const auto* key : keys)
    if (const auto* value = trained.find_path(key); value && !tree.find_path(key))
      tree.set_path(key, *value);
}

int eval_on(const Cluster& cluster, const EvalArguments& arguments) {
  const auto with_data = [&](Config& tree) {
    const auto& model = arguments.model.model;
    const auto trained = names_model(model) ? trained_config(model) : Config();
    if (!arguments.data.empty())
      tree.set_path("data.root", {arguments.data.string(), {"--data", 0, 0}});
    else if (!tree.find_path("data.root") && trained.find_path("data.root"))
      take_keys(tree, trained, {"data.root", "data.val"});
    else if (!tree.find_path("data.root") && names_model(model))
      throw ConfigError(
          fmt::format("{} does not record its evaluation data; give a data set with --data; its "
                      "split is data.val (--set data.val=NAME)",
                      model));
    take_keys(tree, trained, {"callbacks.evaluate.max_detections", "data.eval_reduced_decoding"});
  };
  const auto [loaded, weights] = arguments.model.load(with_data, cluster);
  const Session session(loaded, cluster);
  const auto& recipe = session.recipe();
  const auto card = checked_card(weights, recipe, cluster);
  auto split = open_split(recipe.data, recipe.data.val);
  if (card) split = labelled_by(*card, split, recipe, weights);
  const auto detector = session.make_trained_detector(split.classes, weights);
  if (arguments.proposals && !detector->gives_notes())
    throw ConfigError(fmt::format("--proposals: {}",
                                  sees_several_views(recipe.model)
                                      ? "needs a single view per image; add --set "
                                        "model.test.aug_flip=false --set model.test.aug_scales=[1]"
                                      : detector->title() + " has no second stage"));
  if (arguments.boundary && !detector->gives_masks())
    throw ConfigError("--boundary: " + detector->title() + " predicts no masks");
  EvaluationRun run{.keep_detections = !arguments.out.empty() || arguments.voc,
                    .max_detections = arguments.max_detections > 0 ? arguments.max_detections
                                                                   : evaluated_detections(recipe),
                    .boundary = arguments.boundary,
                    .proposals = arguments.proposals};
  std::optional<PredictionProgress> progress;
  if (cluster.is_chief()) {
    const auto all = (std::ssize(split.annotations->images) + cluster.size() - 1) / cluster.size();
    run.so_far = [&, all, ap = RunningAp(kApPause),
                  log = RunningApLog(all, kApPause)](const coco::Evaluator& boxes) mutable {
      if (!shows_progress()) return log(boxes);
      ap.update_if_due(boxes);
      progress->show(static_cast<std::int64_t>(boxes.images()), ap.text());
    };
    progress.emplace("image", 0, all);
  }
  const auto scores = evaluate_detector(*detector, session.passes_over(split), run, cluster);
  progress.reset();
  if (!cluster.is_chief()) return kDone;
  if (const auto text = coco::text(scores->limit); !text.empty())
    log_warning("{}; raise the limit with --max-dets", text);
  if (!arguments.out.empty()) coco::write_detections(arguments.out, scores->detections);
  std::optional<coco::VocEvaluation> voc;
  if (arguments.voc)
    voc = coco::evaluate_voc(*split.annotations, scores->detections, scores->boxes.category_ids);
  const auto lost = std::ssize(split.annotations->images) - scores->images;  // unreadable images
  if (arguments.json) {
    auto json = to_json(*scores);
    json["left_out"] = lost;
    if (voc) json["voc"] = voc_json(*voc);
    print(json);
  } else {
    print_formatted("{}{}\n{} in {}{}\n", score_tables(*scores),
                    voc ? coco::table(*voc, *split.annotations) : "",
                    counted(scores->images, "image"), duration_text(scores->seconds),
                    lost > 0 ? fmt::format("; {} left out and scored as having no detections",
                                           counted(lost, "image"))
                             : "");
    suggest_next(
        arguments.out.empty()
            ? std::string(
                  "repeat with --out FILE, then trainer coco-eval --analyze to examine the errors")
            : fmt::format("trainer coco-eval --gt {} --dt {} --iou {} --analyze",
                          find_split(recipe.data, recipe.data.val).annotations.string(),
                          arguments.out.string(), scores->masks ? "segm" : "bbox"));
  }
  return kDone;
}

int eval(const EvalArguments& arguments) {
  return Cluster::run([&](const Cluster& cluster) { return eval_on(cluster, arguments); });
}

}  // namespace

void add_eval(CLI::App& app, Action& action) {
  auto [command, arguments] = add_subcommand(app, action, "eval", eval);
  arguments.model.add_to(command);
  add_option(command, "--data", arguments.data, "DIR",
             "data set instead of data.root: DIR/annotations/instances_val2017.json and "
             "DIR/val2017; another split with --set data.val=NAME");
  add_option(command, "--out", arguments.out, "FILE",
             "COCO results file to write the detections to");
  add_option(command, "--max-dets", arguments.max_detections, "N",
             "maximum detections per image and category (LVIS: per image) that AP counts")
      ->check(CLI::Range(100, 100000))
      ->default_str("callbacks.evaluate.max_detections");
  command.add_flag("--boundary", arguments.boundary, "also compute Boundary AP of masks");
  command.add_flag("--proposals", arguments.proposals,
                   "also compute the recall of the first 100, 300 and 1000 proposals per image");
  add_voc_flag(command, arguments.voc);
  add_json_flag(command, arguments.json);
  add_examples(
      command,
      {"trainer eval runs/maskrcnn-1", "trainer eval runs/maskrcnn-1 --data data/sample",
       "trainer eval configs/maskrcnn.toml --weights runs/maskrcnn/checkpoints/latest",
       "trainer eval configs/maskrcnn.toml --weights model.safetensors --json --out results.json"});
}

}  // namespace millrace::cli
