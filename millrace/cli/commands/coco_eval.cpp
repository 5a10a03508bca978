// trainer coco-eval: the evaluator alone.
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <tbb/global_control.h>

#include <chrono>
#include <memory>
#include <optional>

#include "millrace/base/text.h"
#include "millrace/cli/analysis_arguments.h"
#include "millrace/cli/command.h"
#include "millrace/coco/evaluation/evaluate.h"

namespace millrace::cli {
namespace {

struct CocoEvalArguments {
  std::string truth, detections, iou = "bbox";
  bool class_agnostic = false, json = false;
  std::vector<std::uint32_t> max_detections = coco::EvaluateOptions().max_detections;
  int threads = 0;
  AnalysisArguments analysis;
};

/// Why an --iou is not possible, or nothing.
std::string check_iou(const std::string& iou) {
  if (iou == "bbox" || iou == "segm") return {};
  if (iou == "keypoints")
    return "keypoints are not evaluated; bbox and segm are (annotations with keypoints are read as "
           "any others)";
  return iou + " not in {bbox,segm}";
}

/// Says what has no part in the figures.
void tell_left_out(const coco::Evaluation& result, const std::string& truth) {
  if (result.unknown_images > 0)
    spdlog::warn("{} of images that {} lacks: left out",
                 counted(result.unknown_images, "detection"), truth);
  if (result.unknown_categories > 0)
    spdlog::warn("{} of categories that {} lacks: left out",
                 counted(result.unknown_categories, "detection"), truth);
}

int coco_eval(const CocoEvalArguments& arguments) {
  const auto began = std::chrono::steady_clock::now();
  std::optional<tbb::global_control> limit;  // threads that read and score
  if (arguments.threads > 0)
    limit.emplace(tbb::global_control::max_allowed_parallelism,
                  static_cast<std::size_t>(arguments.threads));
  const auto truth = coco::read_dataset(arguments.truth);
  const auto detections = coco::read_detections(arguments.detections, truth.get());
  const auto iou = arguments.iou == "bbox" ? coco::IouType::box : coco::IouType::mask;
  const coco::EvaluateOptions options{.iou = iou,
                                      .area = coco::area_from(detections),
                                      .class_agnostic = arguments.class_agnostic,
                                      .max_detections = arguments.max_detections,
                                      .threads = arguments.threads};
  std::optional<coco::Analysis> analysis;
  if (arguments.analysis.any()) analysis = arguments.analysis.run(*truth, detections, options);
  const coco::Evaluation result =
      analysis ? analysis->evaluation : coco::evaluate(*truth, detections, options);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;

  tell_left_out(result, arguments.truth);
  if (analysis)
    arguments.analysis.write_files(*analysis, iou, arguments.truth, arguments.detections);
  if (!arguments.json) {
    fmt::print("{}{}", coco::table(result, iou),
               analysis ? arguments.analysis.text(*analysis) : "");
    return kDone;
  }
  Json json = {
      {"iou", arguments.iou},
      {"class_agnostic", arguments.class_agnostic},
      {"max_dets", result.max_detections},
      {"stats", result.stats},
      {"images", truth->images.size()},
      {"detections", detections.size()},
      {"left_out", {{"images", result.unknown_images}, {"categories", result.unknown_categories}}},
      {"category_ids", result.category_ids},
      {"category_ap", result.category_ap},
      {"seconds", took.count()}};
  if (analysis) arguments.analysis.add(json, *analysis);
  print(json);
  return kDone;
}

}  // namespace

void add_coco_eval(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("coco-eval", "Score detections against annotations: the 12 COCO figures");
  auto arguments = std::make_shared<CocoEvalArguments>();
  command->add_option("--gt", arguments->truth, "annotations, as COCO's instances_*.json")
      ->required()
      ->type_name("FILE");
  command->add_option("--dt", arguments->detections, "detections, as a COCO results file")
      ->required()
      ->type_name("FILE");
  command->add_option("--iou", arguments->iou, "what overlaps are measured on: boxes or masks")
      ->required()
      ->check(CLI::Validator(check_iou, "{bbox,segm}"));
  command->add_flag("--class-agnostic", arguments->class_agnostic, "all categories count as one");
  command
      ->add_option("--max-dets", arguments->max_detections,
                   "how many detections of an image and category count; AP is taken with 100, the "
                   "three AR with the first three, all else with the third")
      ->delimiter(',')
      ->capture_default_str()
      ->check(positive());
  command->add_option("--threads", arguments->threads, "0: all cores")->check(not_negative());
  arguments->analysis.add_to(*command);
  add_json_flag(*command, arguments->json);
  add_examples(
      *command,
      {"trainer coco-eval --gt annotations/instances_val2017.json --dt detections.json --iou bbox",
       "trainer coco-eval --gt gt.json --dt dt.json --iou segm --json | jq .stats[0]",
       "trainer coco-eval --gt gt.json --dt proposals.json --iou bbox --class-agnostic "
       "--max-dets 100,300,1000",
       "trainer coco-eval --gt gt.json --dt dt.json --iou bbox --analyze --bootstrap 1000 --html "
       "page.html",
       "trainer coco-eval --gt gt.json --dt new.json --iou bbox --versus old.json"});
  command->callback([=, &action] { action = [=] { return coco_eval(*arguments); }; });
}

}  // namespace millrace::cli
