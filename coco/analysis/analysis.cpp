#include "millrace/coco/analysis/analysis.h"

#include <algorithm>
#include <stdexcept>

#include "millrace/coco/evaluation/summary.h"

namespace millrace::coco {
namespace {

/// Returns the precision of a category for all areas and the largest detection limit, [T, R].
std::vector<double> precision_of(const Evaluation& evaluation, std::size_t k) {
  const Layout layout = layout_of(evaluation);
  std::vector<double> precision;
  precision.reserve(kThresholds * kRecalls);
  for (std::size_t t = 0; t < kThresholds; ++t)
    for (std::size_t r = 0; r < kRecalls; ++r)
      precision.push_back(evaluation.precision[layout.at(t, r, k, 0, layout.limits - 1)]);
  return precision;
}

std::vector<CategoryReport> categories_of(const Plan& plan, const Matches& matches,
                                          const Evaluation& evaluation) {
  std::vector<CategoryReport> categories(evaluation.category_ids.size());
  for (std::size_t k = 0; k < categories.size(); ++k) {
    CategoryReport& one = categories[k];
    one.id = evaluation.category_ids[k];
    one.name = plan.options.class_agnostic
                   ? "all"
                   : std::string(plan.truth.text(plan.truth.categories[k].name));
    one.objects = matches.objects(k);
    for (const std::uint32_t i : matches.of(k)) one.detections += !(matches.outcome(i).ignored & 1);
    one.stats = category_stats(evaluation, k);
    one.precision = precision_of(evaluation, k);
  }
  return categories;
}

std::vector<double> mean_precision(const std::vector<CategoryReport>& categories) {
  std::vector<double> sum(kThresholds * kRecalls, -1);
  double count = 0;
  for (const CategoryReport& one : categories) {
    if (one.objects == 0) continue;
    for (std::size_t i = 0; i < sum.size(); ++i)
      sum[i] = (count == 0 ? 0 : sum[i]) + one.precision[i];
    ++count;
  }
  if (count > 0)
    for (double& value : sum) value /= count;
  return sum;
}

/// Returns whether the options are those that an analysis supports.
bool analyzes(const EvaluateOptions& options) {
  const EvaluateOptions usual;
  return options.iou_thresholds == usual.iou_thresholds &&
         options.recall_thresholds == usual.recall_thresholds &&
         options.area_ranges == usual.area_ranges && options.category_ids.empty() &&
         options.iou != IouType::keypoints && !options.federated;
}

}  // namespace

std::vector<std::size_t> weakest_first(const Analysis& analysis) {
  const auto ap = [&](std::size_t k) { return analysis.evaluation.category_ap[k]; };
  std::vector<std::size_t> order;
  for (std::size_t k = 0; k < analysis.categories.size(); ++k)
    if (ap(k) >= 0) order.push_back(k);
  std::ranges::stable_sort(order, {}, ap);
  return order;
}

Analysis analyze(const Dataset& truth, const Detections& detections, const EvaluateOptions& options,
                 std::size_t draws, const Detections* versus) {
  if (!analyzes(options))
    throw std::invalid_argument(
        "analyze: only boxes or masks with the default thresholds, area ranges and categories are "
        "supported");
  const Plan plan(truth, options);
  return in_arena(options.threads, [&] {
    const Matches matches = match(plan, detections, {});
    Analysis result;
    result.evaluation = accumulate(plan, matches);
    result.images = static_cast<std::int64_t>(truth.images.size());
    result.categories = categories_of(plan, matches, result.evaluation);
    result.precision = mean_precision(result.categories);
    result.operating = operating_points(matches);

    ErrorKinds errors(truth, matches);
    Confusion confusion(matches, result.operating.best.score);
    for_each_image(plan, detections, matches, [&](const ImagePairs& pairs) {
      errors.add(pairs);
      confusion.add(pairs);
    });
    result.errors = errors.report();
    result.verdicts = errors.verdicts(detections.size());
    result.confusion = confusion.matrix();

    if (draws == 0) return result;
    const Matches* alone[] = {&matches};
    const Resamples drawn = resample(WeightedAp(plan, alone), truth.images.size(), draws);
    result.spread = spread(drawn);
    result.draws = draws;
    if (versus) {
      EvaluateOptions others = options;
      others.area = area_from(*versus);
      const Matches other = match(Plan(truth, others), *versus, {});
      result.versus = compare(plan, matches, drawn, other);
    }
    return result;
  });
}

}  // namespace millrace::coco
