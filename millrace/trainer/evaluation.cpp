#include "millrace/trainer/evaluation.h"

#include <fmt/format.h>

#include <utility>

#include "millrace/base/errors.h"
#include "millrace/trainer/detector_evaluation.h"

namespace millrace {
namespace {

constexpr auto kBoxes = "bbox/", kMasks = "segm/";

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
  detection.bbox =
      coco::Xywh{object.box.x1, object.box.y1, object.box.width(), object.box.height()};
  detection.score = object.score;
  detection.mask = std::move(object.mask);
  return detection;
}

std::optional<DetectorScores> evaluate_detector(Detector& detector, const EvalData& data,
                                                const EvaluationRun& run, const Cluster& cluster) {
  DetectorEvaluation evaluation(data.split, run);
  const bool whole = evaluation.detect(detector, data.start(share_of(cluster)));
  if (!evaluation.join(cluster, whole)) return std::nullopt;
  return cluster.is_chief() ? evaluation.scores() : DetectorScores();
}

Scalars named_scores(const DetectorScores& scores) {
  Scalars named;
  append(named, kBoxes, scores.boxes);
  if (scores.masks) append(named, kMasks, *scores.masks);
  return named;
}

std::vector<std::string> score_names() {
  std::vector<std::string> names;
  for (const std::string kind : {kBoxes, kMasks})
    for (const auto* name : coco::kStatNames) names.push_back(kind + name);
  return names;
}

std::string score_tables(const DetectorScores& scores) {
  auto text = coco::table(scores.boxes, coco::IouType::box);
  if (scores.masks) text += coco::table(*scores.masks, coco::IouType::mask);
  return text;
}

}  // namespace millrace
