#include "millrace/coco/evaluation/plan.h"

#include <cmath>
#include <stdexcept>

namespace millrace::coco {
namespace {

void expect_numbers(const std::vector<double>& values, const std::string& name) {
  if (values.empty() || std::ranges::any_of(values, [](double v) { return std::isnan(v); }))
    throw std::invalid_argument(name + ": expected one or more numbers, none of them NaN");
}

/// Returns the options with ascending limits. Throws std::invalid_argument like `evaluate`.
EvaluateOptions checked(EvaluateOptions options) {
  auto& limits = options.max_detections;
  std::ranges::sort(limits);
  if (limits.empty() || limits.front() == 0)
    throw std::invalid_argument("max_detections: expected one or more numbers >= 1");
  expect_numbers(options.iou_thresholds, "iou_thresholds");
  expect_numbers(options.recall_thresholds, "recall_thresholds");
  std::vector<double> ends;
  for (const AreaRange& range : options.area_ranges)
    ends.insert(ends.end(), {range.low, range.high});
  expect_numbers(ends, "area_ranges");
  if (options.iou == IouType::keypoints) {
    expect_numbers(options.sigmas, "sigmas");
    if (!(std::ranges::min(options.sigmas) > 0))
      throw std::invalid_argument("sigmas: expected numbers > 0");
  }
  if (options.federated && limits.size() > 1)
    throw std::invalid_argument("max_detections: federated evaluation takes one limit only");
  if (options.federated && options.iou == IouType::keypoints)
    throw std::invalid_argument("federated evaluation supports boxes and masks, not keypoints");
  auto ids = options.category_ids;
  std::ranges::sort(ids);
  if (const auto twice = std::ranges::adjacent_find(ids); twice != ids.end())
    throw std::invalid_argument("category_ids: " + std::to_string(*twice) + " occurs twice");
  return options;
}

}  // namespace

Categories::Categories(const Dataset& truth, const EvaluateOptions& options)
    : ids_(options.category_ids) {
  if (ids_.empty())
    for (const Category& one : truth.categories) ids_.push_back(one.id);
  for (std::size_t k = 0; k < ids_.size(); ++k) {
    const std::int64_t id = ids_[k];
    const auto position = static_cast<int>(k);
    sorted_.emplace_back(id, position);
    if (id < 0 || id >= kSmall) continue;
    const auto at = static_cast<std::size_t>(id);
    if (small_.size() <= at) small_.resize(at + 1, -1);
    small_[at] = position;
  }
  std::ranges::sort(sorted_);
}

int Categories::search(std::int64_t id) const {
  const auto at = std::ranges::lower_bound(sorted_, id, {}, &std::pair<std::int64_t, int>::first);
  return at != sorted_.end() && at->first == id ? at->second : -1;
}

Plan::Plan(const Dataset& data, EvaluateOptions given)
    : truth(data), options(checked(std::move(given))), category(data, options) {
  extent = {options.iou_thresholds.size(), options.area_ranges.size(),
            options.class_agnostic ? 1 : category.ids().size()};
  // As in pycocotools, so that identical shapes reach any threshold.
  constexpr double kMost = 1 - 1e-10;
  for (const double threshold : options.iou_thresholds)
    levels.push_back(std::min(threshold, kMost));
  least = std::ranges::min(levels);
  for (const double sigma : options.sigmas) variances.push_back(sigma * 2 * (sigma * 2));
}

EvaluateOptions usual_options(IouType iou) {
  EvaluateOptions options;
  options.iou = iou;
  if (iou != IouType::keypoints) return options;
  options.max_detections = {20};
  std::erase_if(options.area_ranges, [](const AreaRange& range) { return range.name == "small"; });
  return options;
}

EvaluateOptions lvis_options(IouType iou) {
  EvaluateOptions options;
  options.iou = iou;
  options.federated = true;
  options.max_detections = {300};
  return options;
}

bool is_federated(const Dataset& truth) { return !truth.category_lists.empty(); }

EvaluateOptions options_for(const Dataset& truth, IouType iou, std::uint32_t most) {
  const bool as_lvis = is_federated(truth) && iou != IouType::keypoints;
  auto options = as_lvis ? lvis_options(iou) : usual_options(iou);
  if (most == 0) return options;
  if (options.max_detections.size() < 3)
    options.max_detections = {most};
  else if (most > options.max_detections.back())
    options.max_detections.push_back(most);
  options.of_largest = true;
  return options;
}

std::vector<AreaRange> coco_areas() {
  return {{"all", 0, 1e10},
          {"small", 0, 32 * 32},
          {"medium", 32 * 32, 96 * 96},
          {"large", 96 * 96, 1e10}};
}

}  // namespace millrace::coco
