#include "millrace/callbacks/common/evaluation_files.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "millrace/base/files.h"
#include "millrace/coco/data/detections.h"
#include "millrace/trainer/evaluation/limit_json.h"

namespace millrace {
namespace {

nlohmann::ordered_json json_of(const coco::Evaluation& one) {
  nlohmann::ordered_json json = {
      {"stats", one.stats}, {"category_ids", one.category_ids}, {"category_ap", one.category_ap}};
  if (one.federated) json["stat_names"] = one.stat_names;
  return json;
}

nlohmann::ordered_json json_of(const DetectorScores& scores) {
  nlohmann::ordered_json json = {{"bbox", json_of(scores.boxes)}};
  if (scores.masks) json["segm"] = json_of(*scores.masks);
  if (scores.boundaries) json["boundary"] = json_of(*scores.boundaries);
  for (const auto& [name, value] : proposal_recalls(scores)) json["proposals"][name] = value;
  json["images"] = scores.images;
  json["detections"] = scores.found;
  json["limit"] = limit_json(scores.limit);
  return json;
}

}  // namespace

DetectorScores written(DetectorScores scores, const EvaluationFiles& files) {
  if (!files.results.empty()) {
    make_writable_folder(files.results.parent_path());
    coco::write_detections(files.results, std::exchange(scores.detections, {}));
  }
  make_writable_folder(files.scores.parent_path());
  write_file_atomically(files.scores, json_of(scores).dump() + "\n");
  return scores;
}

}  // namespace millrace
