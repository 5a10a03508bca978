#include "millrace/trainer/evaluation/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/trainer/evaluation/detector_evaluation.h"

namespace millrace {
namespace {

constexpr auto kBoxes = "bbox/", kMasks = "segm/", kBoundaries = "boundary/",
               kProposals = "proposals/";

/// COCO's recalls among its twelve metrics, named by the limits of proposals.
constexpr std::size_t kFirstRecall = 6;
constexpr std::array kRecallNames = {"AR@100",   "AR@300",   "AR@1000",
                                     "ARs@1000", "ARm@1000", "ARl@1000"};

void append(Scalars& scalars, const std::string& prefix, const coco::Evaluation& evaluation) {
  for (std::size_t i = 0; i < evaluation.stats.size(); ++i)
    scalars.emplace_back(prefix + evaluation.stat_names[i], evaluation.stats[i]);
}

/// Returns the names of an evaluation's metrics.
std::vector<std::string> names_of(const std::string& prefix, bool federated,
                                  std::uint32_t max_detections) {
  auto names = federated
                   ? coco::lvis_stat_names(max_detections)
                   : std::vector<std::string>(coco::kStatNames.begin(), coco::kStatNames.end());
  for (auto& name : names) name.insert(0, prefix);
  return names;
}

nlohmann::ordered_json json_of(const coco::Evaluation& one) {
  nlohmann::ordered_json json = {
      {"stats", one.stats}, {"category_ids", one.category_ids}, {"category_ap", one.category_ap}};
  if (one.federated) json["stat_names"] = one.stat_names;
  return json;
}

}  // namespace

coco::LimitCost limit_cost(const DataSplit& split, const EvaluationRun& run) {
  const auto& truth = *split.annotations;
  auto options = coco::options_for(truth, coco::IouType::box, run.max_detections);
  for (const auto id : split.category_ids)
    if (id != kNoCategory) options.category_ids.push_back(id);
  std::vector<std::int64_t> first;
  for (const auto& image : truth.images)
    if (std::ssize(first) < run.max_images) first.push_back(image.id);
  return coco::limit_cost(truth, std::move(options), first);
}

nlohmann::ordered_json scores_json(const DetectorScores& scores) {
  nlohmann::ordered_json json = {{"bbox", json_of(scores.boxes)}};
  if (scores.masks) json["segm"] = json_of(*scores.masks);
  if (scores.boundaries) json["boundary"] = json_of(*scores.boundaries);
  for (const auto& [name, value] : proposal_recalls(scores)) json["proposals"][name] = value;
  json["images"] = scores.images;
  return json;
}

nlohmann::ordered_json limit_json(const coco::LimitCost& cost) {
  return {{"max_detections", cost.limit},
          {"images", cost.images},
          {"images_beyond", cost.images_over_limit},
          {"best_ap", cost.best_ap},
          {"text", coco::text(cost)}};
}

coco::Detection as_coco(DetectedObject object, std::int64_t image_id,
                        const std::vector<std::int64_t>& category_ids) {
  const auto label = static_cast<std::size_t>(object.label);
  if (label >= category_ids.size())
    throw Error(fmt::format("the detector returned label {}, but there are {} classes",
                            object.label, category_ids.size()));
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
  if (scores.boundaries) append(named, kBoundaries, *scores.boundaries);
  for (const auto& [name, value] : proposal_recalls(scores))
    named.emplace_back(kProposals + name, value);
  return named;
}

Scalars proposal_recalls(const DetectorScores& scores) {
  Scalars recalls;
  for (std::size_t i = 0; scores.proposals && i < kRecallNames.size(); ++i)
    recalls.emplace_back(kRecallNames[i], scores.proposals->stats[kFirstRecall + i]);
  return recalls;
}

std::vector<std::string> score_names(bool federated, std::uint32_t max_detections) {
  auto names = names_of(kBoxes, federated, max_detections);
  std::ranges::copy(names_of(kMasks, federated, max_detections), std::back_inserter(names));
  return names;
}

std::vector<std::string> boundary_score_names(bool federated, std::uint32_t max_detections) {
  return names_of(kBoundaries, federated, max_detections);
}

std::vector<std::string> proposal_score_names() {
  std::vector<std::string> names;
  for (const auto* name : kRecallNames) names.push_back(std::string(kProposals) + name);
  return names;
}

std::string score_summary(const Scalars& named) {
  constexpr std::size_t kShown = 6;  // number of AP in coco::kStatNames
  constexpr const char* kTitles[kShown] = {"AP", "AP50", "AP75", "small", "medium", "large"};
  const auto is_of_boundary = [](const auto& one) { return one.first.starts_with(kBoundaries); };
  const int width = std::ranges::any_of(named, is_of_boundary) ? 8 : 4;
  auto text = fmt::format("  {:<{}}", "", width);
  for (const auto* title : kTitles) text += fmt::format("  {:>6}", title);
  for (const auto& [prefix, name] :
       {std::pair(kBoxes, "box"), std::pair(kMasks, "mask"), std::pair(kBoundaries, "boundary")}) {
    auto line = fmt::format("\n  {:<{}}", name, width);
    std::size_t known = 0;
    for (std::size_t i = 0; i < kShown; ++i)
      for (const auto& [score, value] : named)
        if (score == std::string(prefix) + coco::kStatNames[i]) {
          line += value < 0 ? fmt::format("  {:>6}", "-") : fmt::format("  {:>6.3f}", value);
          known += 1;
        }
    if (known == kShown) text += line;
  }
  return text;
}

std::string score_tables(const DetectorScores& scores) {
  auto text = coco::table(scores.boxes, coco::IouType::box);
  if (scores.masks) text += coco::table(*scores.masks, coco::IouType::mask);
  if (scores.boundaries) text += coco::table(*scores.boundaries, coco::IouType::boundary);
  if (!scores.proposals) return text;
  text += "Recall of proposals, all classes together\n";
  std::istringstream lines(coco::table(*scores.proposals, coco::IouType::box));
  for (std::string line; std::getline(lines, line);)
    if (line.find("Average Recall") != std::string::npos) text += line + "\n";
  return text;
}

}  // namespace millrace
