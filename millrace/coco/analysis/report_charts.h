// The drawings of the evaluation's page, each as SVG text. Pure.
#pragma once

#include <string>

#include "millrace/coco/analysis/analysis.h"

namespace millrace::coco {

/// What each kind of error costs, as bars.
std::string error_chart(const ErrorCosts& errors);
/// Precision over recall, a curve for each threshold of IoU.
std::string precision_chart(const Analysis& analysis);
/// Precision, recall and F1 over the score from which on detections are used.
std::string score_chart(const OperatingPoints& points);
/// Precision over recall at IoU .5, small and without axes.
std::string small_curve(const CategoryReport& category);
/// A category's AP as a bar, with the interval where one is known.
std::string ap_bar(const CategoryReport& category, const Interval* interval);
/// Which class is taken for which, as shares of each row.
std::string confusion_chart(const Analysis& analysis);
inline constexpr std::size_t kDrawnDifferences = 30;  // categories: more would fill the page
/// The difference of AP, of all and of the categories that differ most, with its interval.
std::string difference_chart(const Analysis& analysis);

}  // namespace millrace::coco
