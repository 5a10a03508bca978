#include "millrace/coco/analysis/analysis.h"

#include <algorithm>

#include "millrace/coco/evaluation/summary.h"

namespace millrace::coco {
namespace {

/// What the tables of precision say of a category, all areas, the largest limit of detections.
std::vector<double> precision_of(const Evaluation& evaluation, std::size_t k) {
  const Layout layout(evaluation);
  std::vector<double> precision;
  precision.reserve(kThresholds * kRecalls);
  for (std::size_t t = 0; t < kThresholds; ++t)
    for (std::size_t r = 0; r < kRecalls; ++r)
      precision.push_back(evaluation.precision[layout.at(t, r, k, 0, layout.limits - 1)]);
  return precision;
}

std::vector<CategoryReport> categories_of(const Dataset& truth, const Matches& matches,
                                          const Evaluation& evaluation, bool joined) {
  std::vector<CategoryReport> categories(evaluation.category_ids.size());
  for (std::size_t k = 0; k < categories.size(); ++k) {
    CategoryReport& one = categories[k];
    one.id = evaluation.category_ids[k];
    one.name = joined ? "all" : std::string(truth.text(truth.categories[k].name));
    one.objects = matches.truths[k][0];
    for (std::size_t i = matches.first[k]; i < matches.first[k + 1]; ++i)
      one.detections += !(matches.detections[i].outcomes[0].ignored & 1);
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
  const EvaluateOptions valid = checked(options);
  return in_arena(valid.threads, [&] {
    const Matches matches = match(truth, detections, valid, {});
    Analysis result;
    result.evaluation = accumulate(truth, matches, valid);
    result.images = static_cast<std::int64_t>(truth.images.size());
    result.categories = categories_of(truth, matches, result.evaluation, valid.class_agnostic);
    result.precision = mean_precision(result.categories);
    result.operating = operating_points(matches);

    ErrorKinds errors(truth, matches);
    Confusion confusion(matches, result.operating.best.score);
    for_each_image(truth, detections, matches, valid, [&](const ImagePairs& pairs) {
      errors.add(pairs);
      confusion.add(pairs);
    });
    result.errors = errors.report();
    result.confusion = confusion.matrix();

    if (draws == 0) return result;
    const Matches* alone[] = {&matches};
    const Resamples drawn =
        resample(WeightedAp(truth, alone, valid.class_agnostic), truth.images.size(), draws);
    result.spread = spread(drawn);
    result.draws = draws;
    if (versus) {
      EvaluateOptions others = valid;
      others.area = area_from(*versus);
      const Matches other = match(truth, *versus, others, {});
      result.versus = compare(truth, matches, drawn, other, valid.class_agnostic);
    }
    return result;
  });
}

}  // namespace millrace::coco
