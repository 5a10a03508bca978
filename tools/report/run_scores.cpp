#include "millrace/tools/report/run_scores.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <ranges>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/coco/data/records.h"
#include "millrace/dataflow/detection/data_split.h"

namespace millrace::report {
namespace {

namespace fs = std::filesystem;

std::string text_at(const RunFiles& run, std::string_view path) {
  const auto* text = value_at<std::string>(run.config, path);
  return text ? *text : "";
}

std::int64_t number_at(const RunFiles& run, std::string_view path) {
  const auto* number = value_at<std::int64_t>(run.config, path);
  return number ? *number : 0;
}

/// Returns the limits of [callbacks.evaluate].
coco::EvaluateOptions evaluate_options(const RunFiles& run) {
  coco::EvaluateOptions options;
  const auto most = number_at(run, "callbacks.evaluate.max_detections");
  if (most == 0) return options;
  if (most > 100) options.max_detections.push_back(static_cast<std::uint32_t>(most));
  options.of_largest = true;
  return options;
}

}  // namespace

std::int64_t evaluated_images(const RunFiles& run) {
  return number_at(run, "callbacks.evaluate.images");
}

std::shared_ptr<const coco::Dataset> evaluated_part(std::shared_ptr<const coco::Dataset> all,
                                                    const std::vector<std::int64_t>& category_ids,
                                                    std::int64_t most_images) {
  std::map<std::int64_t, std::int64_t> kept;
  for (const auto id : category_ids) kept[id] = id;
  const auto counts = [&](std::int64_t id) { return kept.contains(id); };
  const bool all_images = most_images == 0 || most_images >= std::ssize(all->images);
  if (all_images && std::ranges::all_of(all->categories, counts, &coco::Category::id)) return all;
  std::vector<std::size_t> first(all_images ? all->images.size()
                                            : static_cast<std::size_t>(most_images));
  std::iota(first.begin(), first.end(), std::size_t{0});
  return coco::subset(*all, first, kept);
}

Truth find_truth(const RunFiles& run) {
  const std::string name = text_at(run, "data.val");
  const fs::path root = text_at(run, "data.root");
  if (name.empty() || root.empty())
    throw Error("the configuration has no validation split (data.root, data.val)");
  DataOptions options;
  options.val = name;
  if (const auto* classes = value_at<Config::Array>(run.config, "data.classes"))
    for (const auto& one : *classes)
      if (const auto* text = std::get_if<std::string>(&one.data)) options.classes.push_back(*text);
  const fs::path started_in = text_of(run.last_start(), "directory");
  options.root = (started_in / root).string();  // only `root` if it is absolute
  if (!fs::exists(options.root)) options.root = root.string();
  auto split = open_split(options, name);
  return {evaluated_part(split.annotations, split.category_ids, evaluated_images(run)),
          split.images};
}

RunScores score(const RunFiles& run, Truth truth, std::size_t draws, int threads,
                const RunScores* reference) {
  RunScores scores;
  scores.results = run.newest_results().value();
  scores.found = coco::read_detections(scores.results.file, truth.annotations.get());
  scores.truth = std::move(truth);
  const auto& annotations = *scores.truth.annotations;
  auto options = evaluate_options(run);
  options.threads = threads;
  // Takes areas from boxes, like the evaluation of a training.
  const auto analyzed = [&](coco::IouType iou) {
    options.iou = iou;
    return coco::analyze(annotations, scores.found, options, draws,
                         reference && draws > 0 ? &reference->found : nullptr);
  };
  scores.boxes = analyzed(coco::IouType::box);
  const auto has_mask = [&](std::size_t i) {
    return scores.found[i].mask != coco::Detections::kNoMask;
  };
  const auto positions = std::views::iota(std::size_t{0}, scores.found.size());
  const bool masks = !scores.found.empty() && std::ranges::all_of(positions, has_mask);
  const bool others_have = !reference || reference->masks;
  if (masks && others_have) scores.masks = analyzed(coco::IouType::mask);
  return scores;
}

bool same_truth(const coco::Dataset& a, const coco::Dataset& b) {
  if (&a == &b) return true;
  const auto same_category = [&](const coco::Category& one, const coco::Category& other) {
    return one.id == other.id && a.text(one.name) == b.text(other.name);
  };
  const auto same_image = [&](const coco::Image& one, const coco::Image& other) {
    return one.id == other.id && a.text(one.file_name) == b.text(other.file_name) &&
           one.count == other.count;
  };
  const auto same_object = [](const coco::Annotation& one, const coco::Annotation& other) {
    return one.category_id == other.category_id && one.image_id == other.image_id &&
           std::ranges::equal(one.bbox, other.bbox) && one.area == other.area &&
           one.crowd == other.crowd;
  };
  return std::ranges::equal(a.categories, b.categories, same_category) &&
         std::ranges::equal(a.images, b.images, same_image) &&
         std::ranges::equal(a.annotations, b.annotations, same_object);
}

}  // namespace millrace::report
