// trainer coco-eval: the evaluator alone.
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/files.h"
#include "cli/analysis_output.h"
#include "cli/command.h"
#include "coco/analysis.h"
#include "coco/annotations.h"
#include "coco/report_page.h"

namespace millrace::cli {
namespace {

struct Arguments {
  std::string truth, detections, iou = "bbox";
  bool class_agnostic = false, json = false;
  int threads = 0;
  bool analyze = false;
  std::string csv, html, versus;
  std::size_t draws = 0;

  bool wants_analysis() const {
    return analyze || draws > 0 || !csv.empty() || !html.empty() || !versus.empty();
  }
};

constexpr std::size_t kUsualDraws = 1000;

coco::Analysis analyze(const Arguments& arguments, const coco::Dataset& truth,
                       const coco::Detections& detections, const coco::EvaluateOptions& options) {
  if (arguments.versus.empty()) return coco::analyze(truth, detections, options, arguments.draws);
  const auto others = coco::read_detections(arguments.versus, &truth);
  return coco::analyze(truth, detections, options,
                       arguments.draws > 0 ? arguments.draws : kUsualDraws, &others);
}

/// What was asked for, as text.
std::string text_of(const Arguments& arguments, const coco::Analysis& analysis) {
  std::string text;
  if (analysis.spread) text += spread_text(analysis);
  if (arguments.analyze) text += analysis_text(analysis);
  if (analysis.versus) text += versus_text(analysis);
  return text;
}

void add_to(Json& json, const Arguments& arguments, const coco::Analysis& analysis) {
  if (arguments.analyze) add_analysis(json, analysis);
  if (analysis.spread) json["bootstrap"] = spread_json(analysis);
  if (analysis.versus) json["versus"] = versus_json(analysis);
}

void write_files(const Arguments& arguments, const coco::Analysis& analysis, coco::IouType iou) {
  if (!arguments.csv.empty()) write_file_atomically(arguments.csv, analysis_csv(analysis));
  if (arguments.html.empty()) return;
  const auto name = [](const std::string& path) {
    return std::filesystem::path(path).filename().string();
  };
  write_file_atomically(arguments.html,
                        coco::report_page(analysis, iou,
                                          {name(arguments.truth), name(arguments.detections),
                                           name(arguments.versus)}));
}

int coco_eval(const Arguments& arguments) {
  const auto began = std::chrono::steady_clock::now();
  const auto truth = coco::read_dataset(arguments.truth);
  const auto detections = coco::read_detections(arguments.detections, truth.get());
  const auto iou = arguments.iou == "bbox" ? coco::IouType::box : coco::IouType::mask;
  const coco::EvaluateOptions options{.iou = iou,
                                      .area = coco::area_from(detections),
                                      .class_agnostic = arguments.class_agnostic,
                                      .threads = arguments.threads};
  std::optional<coco::Analysis> analysis;
  if (arguments.wants_analysis()) analysis = analyze(arguments, *truth, detections, options);
  const coco::Evaluation result =
      analysis ? analysis->evaluation : coco::evaluate(*truth, detections, options);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;

  if (analysis) write_files(arguments, *analysis, iou);
  if (!arguments.json) {
    fmt::print("{}{}", coco::table(result, iou), analysis ? text_of(arguments, *analysis) : "");
    return kDone;
  }
  Json json = {{"iou", arguments.iou},
               {"class_agnostic", arguments.class_agnostic},
               {"stats", result.stats},
               {"images", truth->images.size()},
               {"detections", detections.size()},
               {"category_ids", result.category_ids},
               {"category_ap", result.category_ap},
               {"seconds", took.count()}};
  if (analysis) add_to(json, arguments, *analysis);
  print(json);
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
  command->add_flag("--analyze", arguments->analyze,
                    "also what kind of error costs how much, confusions, and each class");
  command
      ->add_option("--bootstrap", arguments->draws,
                   "95 % intervals from so many draws of the images, such as 1000")
      ->type_name("N")
      ->check(CLI::Range(100, 100000));
  command
      ->add_option(
          "--versus", arguments->versus,
          "compare with another results file, with a paired test (1000 draws unless --bootstrap "
          "says otherwise)")
      ->type_name("FILE");
  command->add_option("--csv", arguments->csv, "write a table of the classes")->type_name("FILE");
  command->add_option("--html", arguments->html, "write everything as one page")->type_name("FILE");
  add_json_flag(*command, arguments->json);
  add_examples(
      *command,
      {"trainer coco-eval --gt annotations/instances_val2017.json --dt detections.json --iou bbox",
       "trainer coco-eval --gt gt.json --dt dt.json --iou segm --json | jq .stats[0]",
       "trainer coco-eval --gt gt.json --dt dt.json --iou bbox --analyze --bootstrap 1000 --html "
       "page.html",
       "trainer coco-eval --gt gt.json --dt new.json --iou bbox --versus old.json"});
  command->callback([=, &action] { action = [=] { return coco_eval(*arguments); }; });
}

}  // namespace millrace::cli
