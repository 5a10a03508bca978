#include "millrace/cli/init/choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/cli/detector_rules.h"
#include "millrace/dataflow/sources/detection_source.h"
#include "millrace/trainer/evaluation/evaluation.h"
#include "millrace/trainer/run/recipe.h"

namespace millrace::cli {
namespace {

/// Returns true if most objects have a shape (a polygon or a mask).
bool have_shapes(const coco::Dataset& data) {
  const auto shapes = std::ranges::count_if(data.annotations, [](const coco::Annotation& one) {
    return one.shape.kind != coco::ShapeKind::none;
  });
  return 2 * shapes > std::ssize(data.annotations);
}

SeenData seen_of(const DataSplit& split, const ResizeRule& resize) {
  return seen_data(DetectionSource(split, /*filter_empty=*/true), split.classes, resize);
}

advice::SplitText text_of_split(const formats::Split& split, std::size_t images) {
  const auto objects = std::ranges::count(split.data->annotations, false, &coco::Annotation::crowd);
  advice::SplitText text{split.name, images, static_cast<std::size_t>(objects), ""};
  const auto empty = split.data->images.size() - images;
  if (empty > 0) text.about = fmt::format("{} without an object are not used", empty);
  return text;
}

/// Returns the recipe of the draft's current state, with all defaults, without its plug-ins.
Recipe recipe(const advice::Draft& draft) {
  auto tree = first_config(draft);
  if (auto* plugins = tree.find("plugins")) plugins->data = Config::Array{};
  return resolve(std::move(tree));
}

advice::RuleOf rule_of(const advice::Draft& draft) {
  auto whole = recipe(draft);
  return [type = draft.type, model = whole.model, divisor = whole.data.divisor](
             const std::vector<double>& sizes, const std::vector<double>& ratios) {
    const auto rule = anchor_rule(type, model, divisor, sizes, ratios);
    if (!rule) throw ConfigError(fmt::format("--model {}: this detector has no anchors", type));
    return *rule;
  };
}

}  // namespace

std::string choose_type(const SourceData& data, const std::optional<advice::WeightFacts>& weights) {
  const bool shapes = have_shapes(*data.train.data);
  if (weights && !weights->type.empty())
    return weights->type == "maskrcnn" && !shapes ? "fasterrcnn" : weights->type;
  return shapes ? "maskrcnn" : "fasterrcnn";
}

void set_batch(advice::Draft& draft, std::int64_t images) {
  draft.batch = images;
  draft.plan = advice::choose_plan(draft.train.images, images, draft.network.start,
                                   draft.type == "retinanet");
}

void choose(advice::Draft& draft, const SourceData& data) {
  const auto train = as_data_split(data.train), val = as_data_split(*data.val, train.classes);
  const auto original = seen_of(train, {});
  draft.sides = advice::choose_sides(original, draft.machine);
  const auto counts = class_counts(original);
  for (std::size_t k = 0; k < train.classes.size(); ++k)
    draft.classes.emplace_back(train.classes[k], counts[k].objects);
  for (const double count : objects_per_image(original))
    draft.max_objects = std::max(draft.max_objects, static_cast<std::size_t>(count));
  for (const auto& image : val.annotations->images)
    draft.max_objects = std::max<std::size_t>(draft.max_objects, image.count);
  draft.limited = coco::text(limit_cost(val, {}));
  draft.train = text_of_split(data.train, original.images.size());
  draft.val = text_of_split(*data.val, data.val->data->images.size());
  set_batch(draft, advice::choose_batch(original.images.size(), draft.machine));
  if (draft.network.start != advice::Start::detector) {
    const auto resized = seen_of(train, [&](cv::Size size) { return draft.sides.of(size); });
    draft.anchors = advice::choose_anchors(resized, rule_of(draft));
  }
}

}  // namespace millrace::cli
