#include "millrace/tools/report/analysis_view.h"

#include <string>

#include "millrace/coco/analysis/analysis_json.h"
#include "millrace/tools/report/gallery.h"

namespace millrace::report {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMatrixCategories = 120;  // with more, cells are too small to see
constexpr std::size_t kMostPairs = 50;
constexpr std::size_t kClassRecalls = 4;  // step along a class's curve

std::string name_of(coco::IouType iou) {
  return iou == coco::IouType::box ? "bbox" : iou == coco::IouType::mask ? "segm" : "boundary";
}

/// Returns precision over recall at an IoU of 0.5.
ordered_json class_curve(const coco::CategoryReport& category) {
  auto curve = ordered_json::array();
  for (std::size_t r = 0; r < coco::kRecalls; r += kClassRecalls)
    curve.push_back(rounded(category.precision[r], 3));
  return curve;
}

ordered_json score_curve(const coco::OperatingPoints& points) {
  auto curve = ordered_json::array();
  for (const auto& one : points.curve)
    curve.push_back({rounded(one.score, 4), rounded(one.precision, 4), rounded(one.recall, 4),
                     rounded(one.f1, 4)});
  return curve;
}

ordered_json pairs(const coco::ConfusionMatrix& matrix) {
  auto all = ordered_json::array();
  for (const auto& [truth, found, count, share] : coco::confused_pairs(matrix, kMostPairs))
    all.push_back({{"truth", truth}, {"found", found}, {"count", count}, {"share", share}});
  return all;
}

}  // namespace

ordered_json analysis_view(const coco::Analysis& analysis, coco::IouType iou) {
  ordered_json json = {{"iou", name_of(iou)},
                       {"stat_names", analysis.evaluation.stat_names},
                       {"stats", analysis.evaluation.stats},
                       {"images", analysis.images}};
  coco::add_analysis(json, analysis, /*analyzed=*/true);
  for (std::size_t k = 0; k < analysis.categories.size(); ++k)
    json["per_class"][k]["precision50"] = class_curve(analysis.categories[k]);
  for (auto& curve : json["curves"]["mean"])
    for (auto& value : curve["precision"]) value = rounded(value, 3);
  json["curves"]["score"] = score_curve(analysis.operating);
  if (analysis.confusion.categories > kMatrixCategories) {
    json["confusion"].erase("matrix");
    json["confusion"]["pairs"] = pairs(analysis.confusion);
  }
  return json;
}

}  // namespace millrace::report
