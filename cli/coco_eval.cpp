// trainer coco-eval: the evaluator alone.
#include <fmt/format.h>

#include <chrono>
#include <memory>

#include "cli/command.h"
#include "coco/annotations.h"
#include "coco/evaluate.h"

namespace millrace::cli {
namespace {

struct Arguments {
  std::string truth, detections, iou = "bbox";
  bool class_agnostic = false, json = false;
  int threads = 0;
};

int coco_eval(const Arguments& arguments) {
  const auto began = std::chrono::steady_clock::now();
  const auto truth = coco::read_dataset(arguments.truth);
  const auto detections = coco::read_detections(arguments.detections, truth.get());
  const auto iou = arguments.iou == "bbox" ? coco::IouType::box : coco::IouType::mask;
  const auto result = coco::evaluate(*truth, detections,
                                     {.iou = iou,
                                      .area = coco::area_from(detections),
                                      .class_agnostic = arguments.class_agnostic,
                                      .threads = arguments.threads});
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;

  if (!arguments.json) {
    fmt::print("{}", coco::table(result, iou));
    return kDone;
  }
  print({{"iou", arguments.iou},
         {"class_agnostic", arguments.class_agnostic},
         {"stats", result.stats},
         {"images", truth->images.size()},
         {"detections", detections.size()},
         {"category_ids", result.category_ids},
         {"category_ap", result.category_ap},
         {"seconds", took.count()}});
  return kDone;
}

}  // namespace

void add_coco_eval(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("coco-eval", "Score detections against annotations: the 12 COCO figures");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("--gt", arguments->truth, "annotations, as COCO's instances_*.json")
      ->required()
      ->type_name("FILE");
  command->add_option("--dt", arguments->detections, "detections, as a COCO results file")
      ->required()
      ->type_name("FILE");
  command->add_option("--iou", arguments->iou, "what overlaps are measured on: boxes or masks")
      ->required()
      ->check(CLI::IsMember({"bbox", "segm"}));
  command->add_flag("--class-agnostic", arguments->class_agnostic, "all categories count as one");
  command->add_option("--threads", arguments->threads, "0: all cores")
      ->check(CLI::NonNegativeNumber);
  add_json_flag(*command, arguments->json);
  add_examples(
      *command,
      {"trainer coco-eval --gt annotations/instances_val2017.json --dt detections.json --iou bbox",
       "trainer coco-eval --gt gt.json --dt dt.json --iou segm --json | jq .stats[0]"});
  command->callback([=, &action] { action = [=] { return coco_eval(*arguments); }; });
}

}  // namespace millrace::cli
