// trainer doctor: reports problems in a data set.
#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/base/text.h"
#include "millrace/cli/arguments.h"
#include "millrace/cli/command.h"
#include "millrace/cli/detector_rules.h"
#include "millrace/cli/doctor_report.h"
#include "millrace/cli/image_progress.h"
#include "millrace/cli/init/choices.h"
#include "millrace/cli/init/source_data.h"
#include "millrace/dataflow/detection/count_objects.h"
#include "millrace/dataflow/detection/resize_shortest_edge.h"
#include "millrace/dataflow/sources/detection_source.h"
#include "millrace/dataflow/sources/train_data.h"
#include "millrace/dataflow/stage_tables.h"
#include "millrace/models/detector/make_detector.h"
#include "millrace/tools/data/checks.h"
#include "millrace/trainer/evaluation/evaluation.h"
#include "millrace/trainer/run/published_accuracy.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;
using coco::FindingKind;
using coco::Findings;
using enum coco::Severity;

constexpr FindingKind kNothing{"nothing-to-train", error, "splits without an image to train on",
                               "training stops before its first step"};
constexpr FindingKind kRefused{"training-refused", error,
                               "reasons why the model cannot learn from this data",
                               "training stops before its first step"};
constexpr FindingKind kDoubtful{"training-doubtful", warning,
                                "warnings of the model about training with this data",
                                "training starts with this warning"};
constexpr FindingKind kLimited{
    "evaluation-limited", warning, "evaluations that cannot count all objects",
    "AP does not count all detections; raise callbacks.evaluate.max_detections"};
constexpr FindingKind kSource{"source-unreadable", error, "declared sources that cannot be read",
                              "training stops before its first step"};

struct DoctorArguments {
  ConfigArguments config;
  std::string images = "all";
  std::size_t max_examples = 5;
  bool json = false;
};

/// Examines the training and validation data of a recipe.
class Doctor {
 public:
  Doctor(const Recipe& recipe, const DoctorArguments& arguments)
      : recipe_(recipe), arguments_(arguments), across_(arguments.max_examples) {}

  DoctorReport examine() {
    const auto& data = recipe_.data;
    // Missing splits are reported before anything takes time.
    if (recipe_.sources.empty()) find_split(data, data.train);
    if (!data.val.empty()) find_split(data, data.val);
    if (recipe_.sources.empty())
      examine_split(data.train, /*trains=*/true);
    else
      examine_sources();
    if (data.val == data.train && recipe_.sources.empty())
      report_.unexamined.push_back(
          "data.val, because it is data.train: scores will not measure generalization");
    else if (!data.val.empty())
      examine_split(data.val, /*trains=*/false);
    compare_splits();
    ask_model();
    find_ceiling();
    if (arguments_.images == "none")
      report_.unexamined.push_back("image files (--images none)");
    else if (arguments_.images == "headers")
      report_.unexamined.push_back("pixels of JPEG files (--images headers)");
    if (!learns_shapes()) report_.unexamined.push_back("shapes, because model.masks = false");
    return std::move(report_);
  }

 private:
  void examine_split(const std::string& name, bool trains) {
    const auto paths = find_split(recipe_.data, name);
    auto findings = across_.none();
    if (const auto data = coco::check_records(paths.annotations, findings)) {
      if (classes_.empty()) classes_ = recipe_.data.classes;
      NamedSplit named{name, as_data_split({name, paths.images, data}, classes_)};
      const auto& split = named.data;
      classes_ = split.classes;  // those of the first readable split
      ImageProgress progress(name, data->images.size());
      const auto usable = check_split(named, checks(), findings, std::ref(progress));
      const bool is_empty = (recipe_.data.filter_empty ? usable : data->images.size()) == 0;
      if (trains && is_empty)
        findings.add(kNothing, {.what = "see data.classes and data.filter_empty"});
      report_.splits.push_back(facts(name, split, trains, findings));
      if (trains && !is_empty)
        train_objects_ = count_objects(DetectionSource(split, /*filter_empty=*/false));
      if (name == recipe_.data.val) check_limit(split, findings);
      splits_.push_back(std::move(named));
    }
    report_.add(name, findings);
  }

  SplitChecks checks() const {
    SplitChecks checks{learns_shapes(), ImageCheck::decode, recipe_.data};
    if (arguments_.images == "headers") checks.images = ImageCheck::heads;
    if (arguments_.images == "none") checks.images.reset();
    return checks;
  }

  /// Computes the scores that perfect predictions would reach on the validation split.
  void find_ceiling() {
    const auto& data = recipe_.data;
    const auto split = std::ranges::find(splits_, data.val, &NamedSplit::name);
    if (data.val.empty() || split == splits_.end()) return;
    auto rule = ceiling_rule(recipe_.model_type, recipe_.model, data.divisor);
    if (!rule) return;
    const auto side = data.short_side.empty() ? 0 : data.settled_test_short_side();
    const ResizeShortestEdge resize{.short_side = {side},
                                    .max_side = side > 0 ? data.settled_test_max_side() : 0,
                                    .style = data.resize_style};
    if (side > 0)
      rule->resize = [=](cv::Size size) { return resize.size_of(size, side); };
    else
      rule->anchors.reset();  // the size of the detector's input is not known
    rule->max_detections = evaluated_detections(recipe_);
    report_.ceiling = {data.val, *rule, ceilings(split->data, *rule)};
  }

  void check_limit(const DataSplit& split, Findings& findings) const {
    const auto cost = limit_cost(split, {.max_detections = evaluated_detections(recipe_)});
    if (cost.images_over_limit > 0) findings.add(kLimited, {.what = coco::text(cost)});
  }

  /// Adds the detector's warnings about training on these data, or its refusal.
  void ask_model() {
    if (!train_objects_ || classes_.empty()) return;
    auto findings = across_.none();
    const auto detector = make_detector(recipe_.model_type, recipe_.model, {.classes = classes_});
    const TrainingFacts facts{.starts_random = recipe_.weights.empty(),
                              .count_objects = [&] { return *train_objects_; }};
    try {
      for (const auto& warning : detector->check_training(facts))
        findings.add(kDoubtful, {.what = warning});
    } catch (const ConfigError& problem) {
      findings.add(kRefused, {.what = problem.what()});
    }
    for (const auto& warning : published_warnings(recipe_, recipe_.images_per_step()))
      findings.add(kDoubtful, {.what = warning});
    report_.add("the model", findings);
  }

  /// Returns true if the model uses masks, or if its options do not specify that.
  bool learns_shapes() const {
    const auto* wanted = value_at<bool>(recipe_.model, "masks");
    return !wanted || *wanted;
  }

  SplitFacts facts(const std::string& name, const DataSplit& split, bool trains,
                   Findings& findings) const {
    const auto& data = *split.annotations;
    const auto crowds = std::ranges::count(data.annotations, true, &coco::Annotation::crowd);
    SplitFacts facts{.name = name,
                     .source = data.source,
                     .images = data.images.size(),
                     .objects = data.annotations.size(),
                     .crowds = static_cast<std::size_t>(crowds)};
    const auto& sides = recipe_.data;
    if (sides.short_side.empty()) return facts;
    if (!trains)
      facts.sizes = check_sizes(split, sides.settled_test_short_side(),
                                sides.settled_test_max_side(), findings);
    else if (const auto resize = only_resize(recipe_.stages))
      facts.sizes = check_sizes(split, *std::ranges::max_element(resize->short_side),
                                resize->max_side, findings);
    return facts;
  }

  void examine_sources() {
    const std::string name = "data.sources";
    auto findings = across_.none();
    try {
      const auto train = open_train_data(recipe_.data, recipe_.sources);
      const auto& source = *train.source;
      classes_ = train.classes;
      ImageProgress progress(name, static_cast<std::size_t>(source.size()));
      check_samples(source, arguments_.images == "all", findings, std::ref(progress), recipe_.data);
      report_.splits.push_back({name, "[[data.sources]]", static_cast<std::size_t>(source.size())});
      train_objects_ = count_objects(source);
    } catch (const ConfigError&) {
      throw;
    } catch (const Error& problem) {
      findings.add(kSource, {.what = problem.what()});
    }
    report_.add(name, findings);
    report_.unexamined.push_back(
        "annotations of [[data.sources]] that a flow does not read; to examine a folder in COCO's "
        "layout, set data.root and data.train to it");
  }

  void compare_splits() {
    report_.table = count_classes(splits_);
    report_.classes = classes_;
    for (const auto& split : splits_) report_.table_splits.push_back(split.name);
    if (recipe_.sources.empty() && !splits_.empty() && splits_.front().name == recipe_.data.train)
      check_classes(splits_, report_.table, across_);
    check_copies(splits_, across_);
    report_.add("all splits", across_);
  }

  const Recipe& recipe_;
  const DoctorArguments& arguments_;
  DoctorReport report_;
  std::vector<std::string> classes_;
  std::optional<ObjectCounts> train_objects_;  // nullopt if there is nothing to train on
  std::vector<NamedSplit> splits_;
  Findings across_;
};

/// Returns the suggested next step.
std::string next_of(const DoctorReport& report, const std::string& config) {
  const auto first = std::ranges::find(report.findings, error,
                                       [](const coco::Finding& one) { return one.kind.severity; });
  if (first != report.findings.end())
    return fmt::format("fix the errors, first {} in {}; see docs/data-checks.md", first->kind.name,
                       first->where);
  return fmt::format("trainer run {}{}", config,
                     report.findings.empty() ? "" : "; training uses the remaining data");
}

/// Reports what `trainer init` would find in a folder of photos and labels. Throws ConfigError if
/// it has none.
int examine_folder(const fs::path& folder, const DoctorArguments& arguments) {
  if (!arguments.config.overrides.empty() || arguments.images != "all")
    throw ConfigError(folder.string() +
                      " has no config.toml, so it is examined as a data folder, as by `trainer "
                      "init`; --set and --images need a configuration");
  auto data = read_source(folder, /*format=*/"");
  InitReport report(arguments.json);
  report.examine(folder, data, /*masks=*/choose_type(data, {}) == "maskrcnn");
  const auto images = [](const formats::Split& split) {
    return counted(split.data->images.size(), "image");
  };
  report.add("split", data.val ? fmt::format("{} for training, {} for validation",
                                             images(data.train), images(*data.val))
                               : images(data.train) + ", which `trainer init` splits");
  if (arguments.json)
    print(report.json);
  else
    suggest_next("trainer init DIR --data " + folder.string());
  const auto found = data.findings.sorted();
  return std::ranges::any_of(found, [](const auto& one) { return one.kind.severity == error; })
             ? kFailed
             : kDone;
}

int doctor(const DoctorArguments& given) {
  auto arguments = given;
  if (const fs::path folder = given.config.file; fs::is_directory(folder)) {
    const auto config = folder / "config.toml";  // of a run, a checkpoint or `trainer init`
    if (!fs::exists(config)) return examine_folder(folder, arguments);
    arguments.config.file = config.string();
  }
  auto recipe = arguments.config.load();
  recipe.data.source.clear();  // examines local data, not a server's
  const auto threads = recipe.data.threads > 0 ? static_cast<int>(recipe.data.threads)
                                               : tbb::info::default_concurrency();
  const tbb::global_control workers(tbb::global_control::max_allowed_parallelism,
                                    static_cast<std::size_t>(threads));
  tbb::task_arena arena(threads);
  const auto report = arena.execute([&] { return Doctor(recipe, arguments).examine(); });
  if (arguments.json) {
    print(to_json(report));
  } else {
    print_lines(to_text(report));
    suggest_next(next_of(report, arguments.config.file));
  }
  return report.kinds(error) > 0 ? kFailed : kDone;
}

}  // namespace

void add_doctor(CLI::App& app, Action& action) {
  auto [command, arguments] = add_subcommand(app, action, "doctor", doctor);
  arguments.config.add_to(command)->description(
      "TOML file such as configs/maskrcnn.toml, run folder, or folder of images and labels");
  command
      .add_option(
          "--images", arguments.images,
          "check of image files: all = decode each, headers = read sizes, none = do not read")
      ->check(CLI::IsMember({"all", "headers", "none"}))
      ->capture_default_str();
  add_option(command, "--max", arguments.max_examples, "N",
             "maximum number of examples per kind of finding")
      ->check(not_negative())
      ->capture_default_str();
  add_json_flag(command, arguments.json);
  add_examples(command,
               {"trainer doctor configs/maskrcnn.toml", "trainer doctor runs/maskrcnn-1",
                "trainer doctor photos/",
                "trainer doctor configs/maskrcnn.toml --set data.root=/data/coco --images headers",
                "trainer doctor configs/maskrcnn.toml --json | jq '.findings[].name'"});
}

}  // namespace millrace::cli
