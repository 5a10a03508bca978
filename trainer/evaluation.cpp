#include "trainer/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/errors.h"
#include "coco/records.h"

namespace millrace {
namespace {

/// The annotations of the classes that the detector knows: the others are not its task.
std::shared_ptr<const coco::Dataset> truth_of(const DataSplit& split) {
  const auto& all = *split.annotations;
  const auto counts = [&](std::int64_t category) {
    return std::ranges::count(split.category_ids, category) > 0;
  };
  if (std::ranges::all_of(all.categories, counts, &coco::Category::id)) return split.annotations;
  coco::Records part;
  for (const auto& category : all.categories)
    if (counts(category.id)) part.add_category(category.id, all.text(category.name));
  for (const auto& image : all.images) {
    part.add_image(image.id, all.text(image.file_name), image.width, image.height);
    for (const auto& object : all.objects(image))
      if (counts(object.category_id)) part.add(object, all.segmentation(object));
  }
  return assemble(std::move(part), all.source);
}

void append(Scalars& scalars, const std::string& prefix, const coco::Evaluation& evaluation) {
  for (std::size_t i = 0; i < evaluation.stats.size(); ++i)
    scalars.emplace_back(prefix + coco::kStatNames[i], evaluation.stats[i]);
}

}  // namespace

coco::Detection as_coco(DetectedObject object, std::int64_t image_id,
                        const std::vector<std::int64_t>& category_ids) {
  const auto label = static_cast<std::size_t>(object.label);
  if (label >= category_ids.size())
    throw Error(
        fmt::format("the detector found class {} of {}", object.label, category_ids.size()));
  coco::Detection detection;
  detection.image_id = image_id;
  detection.category_id = category_ids[label];
  detection.bbox[0] = object.box.x1;
  detection.bbox[1] = object.box.y1;
  detection.bbox[2] = object.box.width();
  detection.bbox[3] = object.box.height();
  detection.has_bbox = true;
  detection.score = object.score;
  detection.mask = std::move(object.mask);
  return detection;
}

std::optional<DetectorScores> evaluate_detector(Detector& detector, const EvalData& data,
                                                const EvaluationRun& run) {
  const auto start = std::chrono::steady_clock::now();
  DetectorScores scores;
  std::vector<std::int64_t> seen;
  const auto enough = [&] { return run.max_images > 0 && scores.images >= run.max_images; };

  for (const auto flow = data.start(); !enough();) {
    if (run.cancelled()) return std::nullopt;
    const auto batch = flow->next();
    if (!batch) break;
    auto found = detector.detect(batch->value);
    if (found.size() != batch->value.size())
      throw Error(fmt::format("the detector answered for {} of {} images", found.size(),
                              batch->value.size()));
    for (std::size_t i = 0; i < found.size() && !enough(); ++i, ++scores.images) {
      const auto image_id = batch->value.images[i].image_id;
      seen.push_back(image_id);
      for (auto& object : found[i])
        scores.detections.add(as_coco(std::move(object), image_id, data.split.category_ids));
    }
  }

  if (run.max_images <= 0)
    seen.clear();  // every image of the data set, also those that could not be read
  const auto truth = truth_of(data.split);
  const auto score = [&](coco::IouType iou) {
    return coco::evaluate(*truth, scores.detections, {.iou = iou, .threads = run.threads}, seen);
  };
  scores.boxes = score(coco::IouType::box);
  if (scores.detections.has_masks() || scores.detections.empty())
    scores.masks = score(coco::IouType::mask);
  scores.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return scores;
}

Scalars named_scores(const DetectorScores& scores) {
  Scalars named;
  append(named, "bbox/", scores.boxes);
  if (scores.masks) append(named, "segm/", *scores.masks);
  return named;
}

std::string score_tables(const DetectorScores& scores) {
  auto text = coco::table(scores.boxes, coco::IouType::box);
  if (scores.masks) text += coco::table(*scores.masks, coco::IouType::mask);
  return text;
}

}  // namespace millrace
