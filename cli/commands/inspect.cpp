// trainer inspect: shows what training sees, as a page and as pictures.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "millrace/base/files.h"
#include "millrace/base/text.h"
#include "millrace/cli/arguments.h"
#include "millrace/cli/command.h"
#include "millrace/cli/detector_rules.h"
#include "millrace/cli/findings_text.h"
#include "millrace/cli/inspect/inspection.h"
#include "millrace/cli/inspect/split_gallery.h"
#include "millrace/coco/drawing/draw.h"
#include "millrace/dataflow/detection_flows.h"
#include "millrace/dataflow/sources/detection_source.h"
#include "millrace/dataflow/sources/train_data.h"
#include "millrace/dataflow/stage_tables.h"
#include "millrace/tools/report/view.h"
#include "millrace/trainer/cluster/processors.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

struct InspectArguments {
  ConfigArguments config;
  std::int64_t count = 4;
  fs::path out;
  bool json = false;
};

constexpr std::size_t kTrainPictures = 96, kValPictures = 48;
constexpr std::int64_t kSampledImages = 256;  // if batches are more than resized photos

/// Examines the training and validation data of a recipe.
class Inspector {
 public:
  Inspector(const Recipe& recipe, const InspectArguments& arguments)
      : recipe_(recipe), arguments_(arguments) {}

  Inspection inspect() {
    const auto& data = recipe_.data;
    found_.config = arguments_.config.file;
    // Missing splits are reported before anything takes time.
    if (!data.val.empty() && has_root()) find_split(data, data.val);
    const auto train = open_train_data(data, recipe_.sources);
    make_writable_folder(arguments_.out);
    const auto resize = only_resize(recipe_.stages);
    if (train.source)
      found_.train = chapter_of(recipe_.sources.empty() ? data.train : "data.sources",
                                *train.source, train.classes, resize, kTrainPictures);
    draw_batches_of(train, !found_.train || !resize);
    if (data.val.empty())
      found_.notes.push_back("No validation split (data.val is '').");
    else if (data.val == data.train && recipe_.sources.empty())
      found_.notes.push_back("data.val is data.train: scores will not measure generalization.");
    else if (has_root())
      found_.val = chapter_of_val(train.classes);
    add_remarks();
    return std::move(found_);
  }

 private:
  bool has_root() const { return fs::is_directory(recipe_.data.root); }

  std::optional<AnchorRule> rule() const {
    return anchor_rule(recipe_.model_type, recipe_.model, recipe_.data.divisor);
  }

  /// Sets the coverage of the view if anchors are known.
  void set_coverage(SplitView& view) const {
    if (const auto anchors = rule()) view.coverage = anchor_coverage(view.data, *anchors);
  }

  SplitChapter chapter_of(const std::string& name, const Source<Sample>& source,
                          const std::vector<std::string>& classes,
                          const std::optional<ResizeShortestEdge>& resize,
                          std::size_t pictures) const {
    SplitChapter chapter{.view = {.name = name, .seen = "in pixels of the files"}, .gallery = {}};
    auto& view = chapter.view;
    if (resize) {
      const auto side = middle_side(*resize);
      view.seen = seen_text(*resize, side);
      view.data =
          seen_data(source, classes, [&](cv::Size size) { return resize->size_of(size, side); });
      set_coverage(view);
    } else {
      view.data = seen_data(source, classes, {});
    }
    const auto chosen = choose_images(view.data, view.coverage, pictures);
    chapter.gallery =
        split_gallery(source, view.data, view.coverage, chosen, recipe_.data.max_pixels);
    return chapter;
  }

  SplitChapter chapter_of_val(const std::vector<std::string>& classes) const {
    auto options = recipe_.data;
    options.classes = classes;
    const DetectionSource source(open_split(options, options.val), /*filter_empty=*/false);
    const ResizeShortestEdge resize{.short_side = {options.settled_test_short_side()},
                                    .max_side = options.settled_test_max_side(),
                                    .style = options.resize_style};
    return chapter_of(options.val, source, classes, resize, kValPictures);
  }

  /// Returns a shorter side that represents all that the resize may draw.
  static std::int64_t middle_side(const ResizeShortestEdge& resize) {
    auto sides = resize.short_side;
    if (resize.range) return (sides.front() + sides.back()) / 2;
    std::ranges::sort(sides);
    return sides[sides.size() / 2];
  }

  static std::string seen_text(const ResizeShortestEdge& resize, std::int64_t side) {
    return fmt::format(
        "in pixels of images with a shorter side of {}{} and a longer side of at most {}", side,
        resize.draws() ? " (the middle of data.short_side)" : "", resize.max_side);
  }

  void draw_batches_of(const TrainData& train, bool sample) {
    const auto flow = start_train_flow(recipe_.data, recipe_.stages, train,
                                       static_cast<std::uint64_t>(recipe_.train.seed));
    BatchesWanted wanted{arguments_.count, arguments_.count};
    const auto batch = std::max<std::int64_t>(1, recipe_.data.batch_size);
    if (sample) wanted.counted = std::max(wanted.counted, (kSampledImages + batch - 1) / batch);
    found_.batches = draw_batches(*flow, train.classes, wanted, arguments_.out);
    if (!sample) return;
    SplitView view{.name = fmt::format("the first {} batches", found_.batches.batches),
                   .seen = "in pixels of the images in batches, after all stages",
                   .data = found_.batches.seen,
                   .is_sampled = true};
    set_coverage(view);
    found_.sampled = std::move(view);
  }

  /// Adds distributions and remarks.
  void add_remarks() {
    DataContext context;
    const auto& model = recipe_.model;
    if (const auto* most = value_at<std::int64_t>(model, "test.detections_per_img"))
      context.max_detections = *most;
    context.short_side = *std::ranges::max_element(recipe_.data.short_side);
    if (const auto anchors = rule()) {
      context.anchor_sizes = numbers(model, "anchors.sizes");
      context.anchor_ratios = numbers(model, "anchors.aspect_ratios");
      context.foreground = anchors->foreground;
      context.foreground_key = model.find_path("rpn.fg_iou_thresh") ? "model.rpn.fg_iou_thresh"
                                                                    : "model.head.fg_iou_thresh";
      context.better = advice::better_sizes(
          found_.learned().data, {.sizes = context.anchor_sizes, .ratios = context.anchor_ratios},
          [&](const auto& sizes, const auto& ratios) {
            return *anchor_rule(recipe_.model_type, model, recipe_.data.divisor, sizes, ratios);
          });
    } else {
      found_.notes.push_back(
          fmt::format("The anchors of the detector '{}' are not known.", recipe_.model_type));
    }
    found_.distributions = distributions(found_.learned());
    found_.remarks = remarks(found_.learned(), found_.train ? found_.train->view : found_.learned(),
                             found_.val ? &found_.val->view : nullptr, context);
  }

  const Recipe& recipe_;
  const InspectArguments& arguments_;
  Inspection found_;
};

/// Returns the output of --json.
Json json_of(const Inspection& found, const fs::path& out) {
  Json json;
  json["page"] = (out / "index.html").string();
  for (const auto& file : found.batches.files) json["pictures"].push_back(file.string());
  json["histograms"] = (out / "histograms.png").string();
  json.update(to_json(found));
  return json;
}

void print_remark(coco::Severity severity, const std::string& text) {
  print_lines(fmt::format("{:9}{}\n", severity_name(severity), text), std::string(9, ' '));
}

void print_findings(const Inspection& found, const fs::path& out) {
  const auto line = [](const SplitView& view) {
    const auto crowds = crowd_count(view.data);
    print_formatted("{}: {}, {}{}\n", view.name, counted(view.data.images.size(), "image"),
                    counted(view.data.objects.size() - crowds, "object"),
                    crowds > 0 ? ", " + counted(crowds, "crowd") : std::string());
  };
  if (found.train) line(found.train->view);
  if (found.val) line(found.val->view);
  for (const auto& one : found.remarks) print_remark(one.severity, one.text);
  for (const auto& note : found.notes) print_remark(coco::Severity::note, note);
  print_lines(fmt::format("wrote {}, and beside it the batches and histograms as PNG files\n",
                          (out / "index.html").string()));
  suggest_next("open {}; trainer run {}", (out / "index.html").string(), found.config);
}

int inspect(const InspectArguments& arguments) {
  auto recipe = arguments.config.load();
  if (fs::is_directory(recipe.data.root)) recipe.data.source.clear();  // local data exist
  const Threads threads(recipe.train.threads, recipe.data.threads);
  const auto found = Inspector(recipe, arguments).inspect();
  coco::write_picture(arguments.out / "histograms.png", histogram_picture(found.distributions));
  report::write_view(arguments.out / "index.html", "inspection", "trainer inspect",
                     inspection_view(found));
  if (arguments.json)
    print(json_of(found, arguments.out));
  else
    print_findings(found, arguments.out);
  return kDone;
}

}  // namespace

void add_inspect(CLI::App& app, Action& action) {
  auto [command, arguments] = add_subcommand(app, action, "inspect", inspect);
  arguments.config.add_to(command);
  command.add_option("--count", arguments.count, "number of batches to draw")
      ->capture_default_str()
      ->check(positive());
  add_option(command, "--out", arguments.out, "DIR",
             "folder for index.html, batch-0.png, ... and histograms.png")
      ->required();
  add_json_flag(command, arguments.json);
  add_examples(
      command,
      {"trainer inspect configs/maskrcnn.toml --out seen",
       "trainer inspect configs/maskrcnn.toml --set data.root=/data/coco --count 8 --out seen",
       "trainer inspect configs/maskrcnn.toml --out seen --json | jq '.remarks[].text'"});
}

}  // namespace millrace::cli
