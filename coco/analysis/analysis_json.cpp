#include "millrace/coco/analysis/analysis_json.h"

#include <string>
#include <utility>
#include <vector>

#include "millrace/coco/evaluation/evaluate.h"

namespace millrace::coco {
namespace {

using nlohmann::ordered_json;

ordered_json to_json(const Interval& interval) {
  return {{"value", interval.value}, {"low", interval.low}, {"high", interval.high}};
}

ordered_json named_stats(const std::vector<double>& stats) {
  ordered_json json;
  for (std::size_t i = 0; i < stats.size(); ++i) json[kStatNames[i]] = stats[i];
  return json;
}

ordered_json to_json(const ErrorCosts& errors) {
  ordered_json json;
  for (std::size_t e = 0; e < kErrorKinds; ++e) {
    json[std::string(kErrorNames[e])] = {{"cost", errors.cost[e]}, {"count", errors.count[e]}};
  }
  json["false_positives"] = {{"cost", errors.false_positives}};
  json["false_negatives"] = {{"cost", errors.false_negatives}};
  return json;
}

ordered_json spread_json(const Analysis& analysis) {
  ordered_json classes = ordered_json::array();
  for (const Interval& one : analysis.spread->category_ap) classes.push_back(to_json(one));
  return {{"draws", analysis.draws},
          {"AP", to_json(analysis.spread->ap)},
          {"AP50", to_json(analysis.spread->ap50)},
          {"category_ap", std::move(classes)},
          {"AP_by_draw", analysis.spread->ap_draws}};
}

ordered_json versus_json(const Analysis& analysis) {
  const auto& versus = *analysis.versus;
  ordered_json classes = ordered_json::array();
  for (std::size_t k = 0; k < versus.category_p.size(); ++k) {
    classes.push_back(to_json(versus.difference.category_ap[k]));
    classes.back()["p"] = versus.category_p[k];
  }
  return {{"draws", analysis.draws},
          {"AP", versus.b.ap},
          {"AP50", versus.b.ap50},
          {"difference",
           {{"AP", to_json(versus.difference.ap)}, {"AP50", to_json(versus.difference.ap50)}}},
          {"p", versus.p},
          {"significant", versus.significant()},
          {"sentence", sentence(versus)},
          {"category_ap", std::move(classes)}};
}

void add_parts(ordered_json& json, const Analysis& analysis) {
  ordered_json& classes = json["per_class"] = ordered_json::array();
  for (std::size_t k = 0; k < analysis.categories.size(); ++k) {
    const CategoryReport& one = analysis.categories[k];
    classes.push_back({{"id", one.id},
                       {"name", one.name},
                       {"objects", one.objects},
                       {"detections", one.detections},
                       {"stats", named_stats(one.stats)},
                       {"errors", to_json(analysis.errors.categories[k])}});
  }
  json["errors"] = to_json(analysis.errors.all);
  const auto& best = analysis.operating.best;
  json["operating_point"] = {{"score", best.score},
                             {"precision", best.precision},
                             {"recall", best.recall},
                             {"f1", best.f1}};
  ordered_json rows = ordered_json::array();
  const auto& matrix = analysis.confusion;
  for (std::size_t truth = 0; truth <= matrix.categories; ++truth)
    for (std::size_t found = 0; found <= matrix.categories; ++found)
      rows[truth].push_back(matrix.at(truth, found));
  json["confusion"] = {{"score", matrix.score}, {"iou", kForeground}, {"matrix", std::move(rows)}};
  ordered_json curves = ordered_json::array();
  for (std::size_t t = 0; t < kThresholds; ++t) {
    const auto begin = analysis.precision.begin() + static_cast<std::ptrdiff_t>(t * kRecalls);
    curves.push_back(
        {{"iou", kIouThresholds[t]}, {"precision", std::vector<double>(begin, begin + kRecalls)}});
  }
  json["curves"] = {{"recall", kRecallThresholds}, {"mean", std::move(curves)}};
}

}  // namespace

void add_analysis(ordered_json& json, const Analysis& analysis, bool analyzed) {
  if (analyzed) add_parts(json, analysis);
  if (analysis.spread) json["bootstrap"] = spread_json(analysis);
  if (analysis.versus) json["versus"] = versus_json(analysis);
}

}  // namespace millrace::coco
