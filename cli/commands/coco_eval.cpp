// trainer coco-eval: runs the evaluator alone.
#include <fmt/format.h>
#include <tbb/global_control.h>

#include <filesystem>
#include <map>
#include <optional>

#include "millrace/base/clock.h"
#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/log.h"
#include "millrace/base/text.h"
#include "millrace/cli/analysis_output.h"
#include "millrace/cli/command.h"
#include "millrace/cli/voc_output.h"
#include "millrace/coco/analysis/analysis_json.h"
#include "millrace/coco/data/detections.h"
#include "millrace/coco/evaluation/evaluate.h"
#include "millrace/coco/evaluation/limit_cost.h"
#include "millrace/tools/report/analysis_view.h"
#include "millrace/tools/report/view.h"

namespace millrace::cli {
namespace {

struct CocoEvalArguments {
  std::string truth, detections, iou = "bbox";
  std::string style;  // empty = that of the annotations
  bool class_agnostic = false, voc = false, json = false;
  std::vector<std::uint32_t> max_detections;  // empty = the style's default
  int threads = 0;

  // Options for more than the twelve COCO metrics.
  bool analyze = false;
  std::size_t draws = 0;  // bootstrap resamples; 0 = none, or the default number with `versus`
  std::string versus, csv, html;

  bool analyzes() const {
    return analyze || draws > 0 || !versus.empty() || !csv.empty() || !html.empty();
  }
};

coco::Analysis analyze(const CocoEvalArguments& arguments, const coco::Dataset& truth,
                       const coco::Detections& detections, const coco::EvaluateOptions& options) {
  if (arguments.versus.empty()) return coco::analyze(truth, detections, options, arguments.draws);
  constexpr std::size_t kUsualDraws = 1000;
  const auto others = coco::read_detections(arguments.versus, &truth);
  coco::require_fit(others, truth, arguments.versus);
  return coco::analyze(truth, detections, options,
                       arguments.draws > 0 ? arguments.draws : kUsualDraws, &others);
}

void write_files(const CocoEvalArguments& arguments, const coco::Analysis& analysis,
                 coco::IouType iou) {
  if (!arguments.csv.empty()) write_file_atomically(arguments.csv, analysis_csv(analysis));
  if (arguments.html.empty()) return;
  const auto name = [](const std::filesystem::path& file) { return file.filename().string(); };
  report::write_view(arguments.html, "analysis", "trainer coco-eval",
                     {{"truth", name(arguments.truth)},
                      {"detections", name(arguments.detections)},
                      {"versus", name(arguments.versus)},
                      {"analysis", report::analysis_view(analysis, iou)}});
}

const std::map<std::string, coco::IouType>& iou_types() {
  static const std::map<std::string, coco::IouType> types = {
      {"bbox", coco::IouType::box},
      {"segm", coco::IouType::mask},
      {"boundary", coco::IouType::boundary},
      {"keypoints", coco::IouType::keypoints}};
  return types;
}

/// Returns LVIS's options if the command line or the annotations require them, otherwise COCO's.
/// Throws ConfigError for options that LVIS's rules exclude.
coco::EvaluateOptions evaluate_options(const CocoEvalArguments& arguments,
                                       const coco::Dataset& truth) {
  const auto iou = iou_types().at(arguments.iou);
  if (arguments.style == "lvis" && iou == coco::IouType::keypoints)
    throw ConfigError("--style lvis: LVIS scores boxes and masks, not keypoints");
  coco::EvaluateOptions options = arguments.style == "coco"   ? coco::usual_options(iou)
                                  : arguments.style == "lvis" ? coco::lvis_options(iou)
                                                              : coco::options_for(truth, iou);
  options.class_agnostic = arguments.class_agnostic;
  if (!arguments.max_detections.empty()) options.max_detections = arguments.max_detections;
  options.threads = arguments.threads;
  if (!options.federated) return options;
  const auto refuse = [&](const std::string& what) {
    throw ConfigError(fmt::format(
        "{}{}", what,
        arguments.style.empty()
            ? fmt::format(
                  "; {} is an LVIS file (neg_category_ids); --style coco applies COCO's rules",
                  arguments.truth)
            : ""));
  };
  if (arguments.analyzes())
    refuse("--analyze, --bootstrap, --versus, --csv and --html need COCO's rules, not LVIS's");
  if (options.max_detections.size() > 1)
    refuse("--max-dets: LVIS has one limit per image, over all categories");
  return options;
}

/// Throws ConfigError if the annotations or the detections have no keypoints.
void check_keypoints(const CocoEvalArguments& arguments, const coco::Dataset& truth,
                     const coco::Detections& detections) {
  const auto refuse = [](const std::string& file) {
    throw ConfigError(fmt::format("--iou keypoints: {} has no keypoints", file));
  };
  if (std::ranges::none_of(truth.annotations,
                           [](const auto& one) { return one.keypoint_count > 0; }))
    refuse(arguments.truth);
  std::size_t i = 0;
  while (i < detections.size() && detections.keypoints_of(detections[i]).empty()) ++i;
  if (i == detections.size() && i > 0) refuse(arguments.detections);
}

/// Warns about detections that the metrics ignore.
void warn_ignored_detections(const coco::Evaluation& result, const std::string& truth) {
  if (result.unknown_images > 0)
    log_warning("left out {} of images that are not in {}",
                counted(result.unknown_images, "detection"), truth);
  if (result.unknown_categories > 0)
    log_warning("left out {} of categories that are not in {}",
                counted(result.unknown_categories, "detection"), truth);
}

int coco_eval(const CocoEvalArguments& arguments) {
  const auto iou = iou_types().at(arguments.iou);
  if (iou == coco::IouType::keypoints && arguments.analyzes())
    throw ConfigError(
        "--iou keypoints: not supported by --analyze, --bootstrap, --versus, --csv and --html");
  if (iou != coco::IouType::box && arguments.voc)
    throw ConfigError("--voc: Pascal VOC scores only boxes; use --iou bbox");
  const auto began = Clock::now();
  std::optional<tbb::global_control> limit;  // threads for reading and scoring
  if (arguments.threads > 0)
    limit.emplace(tbb::global_control::max_allowed_parallelism,
                  static_cast<std::size_t>(arguments.threads));
  const auto truth = coco::read_dataset(arguments.truth);
  auto options = evaluate_options(arguments, *truth);
  const auto detections = coco::read_detections(arguments.detections, truth.get());
  coco::require_fit(detections, *truth, arguments.detections);
  if (iou == coco::IouType::keypoints) check_keypoints(arguments, *truth, detections);
  options.area = coco::area_from(detections);
  std::optional<coco::Analysis> analysis;
  if (arguments.analyzes()) analysis = analyze(arguments, *truth, detections, options);
  const coco::Evaluation result =
      analysis ? analysis->evaluation : coco::evaluate(*truth, detections, options);
  std::optional<coco::VocEvaluation> voc;
  if (arguments.voc) voc = coco::evaluate_voc(*truth, detections);
  const double seconds = seconds_since(began);

  warn_ignored_detections(result, arguments.truth);
  if (iou != coco::IouType::keypoints && result.stats.front() >= 0)
    if (const auto text = coco::text(coco::limit_cost(*truth, options)); !text.empty())
      log_warning("{}; raise the limit with --max-dets N (one number)", text);
  if (analysis) write_files(arguments, *analysis, iou);
  if (!arguments.json) {
    print_formatted("{}{}{}", coco::table(result, iou), voc ? coco::table(*voc, *truth) : "",
                    analysis ? analysis_text(*analysis, arguments.analyze) : "");
    suggest_next(!arguments.html.empty() ? "open " + arguments.html
                 : result.federated      ? "--json also has the AP of each category"
                 : arguments.analyzes()
                     ? "--html FILE writes this as a page; --versus OTHER.json compares two results"
                     : "--analyze shows what each kind of error costs; --bootstrap 1000 adds 95 % "
                       "intervals");
    return kDone;
  }
  Json json = {
      {"iou", arguments.iou},
      {"class_agnostic", arguments.class_agnostic},
      {"max_dets", result.max_detections},
      {"style", result.federated ? "lvis" : "coco"},
      {"stat_names", result.stat_names},
      {"stats", result.stats},
      {"images", truth->images.size()},
      {"detections", detections.size()},
      {"left_out", {{"images", result.unknown_images}, {"categories", result.unknown_categories}}},
      {"category_ids", result.category_ids},
      {"category_ap", result.category_ap},
      {"seconds", seconds}};
  if (voc) json["voc"] = voc_json(*voc);
  if (analysis) coco::add_analysis(json, *analysis, arguments.analyze);
  print(json);
  return kDone;
}

}  // namespace

void add_coco_eval(CLI::App& app, Action& action) {
  auto [command, arguments] = add_subcommand(app, action, "coco-eval", coco_eval);
  add_option(command, "--gt", arguments.truth, "FILE",
             "annotations in COCO's format (instances_*.json)")
      ->required();
  add_option(command, "--dt", arguments.detections, "FILE", "detections in COCO's results format")
      ->required();
  command
      .add_option("--iou", arguments.iou,
                  "type of overlap: boxes, masks, masks with their boundaries, or keypoints")
      ->required()
      ->check(CLI::IsMember({"bbox", "segm", "boundary", "keypoints"}));
  command
      .add_option(
          "--style", arguments.style,
          "rules and metrics: COCO's or LVIS's (federated: 300 detections per image, APr, APc, "
          "APf); by default LVIS's if images have neg_category_ids or not_exhaustive_category_ids")
      ->check(CLI::IsMember({"coco", "lvis"}))
      ->default_str("from the images");
  command.add_flag("--class-agnostic", arguments.class_agnostic, "treat all categories as one");
  add_voc_flag(command, arguments.voc);
  command
      .add_option("--max-dets", arguments.max_detections,
                  "maximum detections per image and category: AP uses 100, the three AR the first "
                  "three values, all others the third; LVIS: one value, per image")
      ->delimiter(',')
      ->default_str("1,10,100; keypoints: 20; LVIS: 300")
      ->check(positive());
  command.add_option("--threads", arguments.threads, "number of threads; 0 = all cores")
      ->check(not_negative());
  command.add_flag("--analyze", arguments.analyze,
                   "also print the cost of each kind of error, confusions, and each class");
  add_option(command, "--bootstrap", arguments.draws, "N",
             "number of resamples of the images for 95 % intervals, such as 1000")
      ->check(CLI::Range(100, 100000));
  add_option(
      command, "--versus", arguments.versus, "FILE",
      "results file to compare with by a paired test (1000 resamples unless --bootstrap is given)");
  add_option(command, "--csv", arguments.csv, "FILE", "CSV file to write, with a row per class");
  add_option(command, "--html", arguments.html, "FILE", "page to write, with everything");
  add_json_flag(command, arguments.json);
  add_examples(
      command,
      {"trainer coco-eval --gt annotations/instances_val2017.json --dt detections.json --iou bbox",
       "trainer coco-eval --gt gt.json --dt dt.json --iou segm --json | jq .stats[0]",
       "trainer coco-eval --gt gt.json --dt dt.json --iou boundary",
       "trainer coco-eval --gt lvis_v1_val.json --dt dt.json --iou segm",
       "trainer coco-eval --gt gt.json --dt proposals.json --iou bbox --class-agnostic "
       "--max-dets 100,300,1000",
       "trainer coco-eval --gt gt.json --dt dt.json --iou bbox --analyze --bootstrap 1000 --html "
       "page.html",
       "trainer coco-eval --gt gt.json --dt new.json --iou bbox --versus old.json"});
}

}  // namespace millrace::cli
