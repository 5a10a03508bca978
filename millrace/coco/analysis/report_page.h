// The evaluation as one HTML page: self-contained, no scripts, light and dark. Pure.
#pragma once

#include <string>
#include <vector>

#include "millrace/coco/analysis/analysis.h"
#include "millrace/page/page.h"

namespace millrace::coco {

/// What the page calls its inputs.
struct ReportNames {
  std::string truth, detections, versus;
};

/// Equal input gives equal bytes.
std::string report_page(const Analysis& analysis, IouType iou, const ReportNames& names);

// Its parts, for other pages.

/// AP and its parts in large digits. HTML.
std::string score_tiles(const Analysis& analysis);
/// What differs from the other results. REQUIRES: analysis.versus.
page::Section versus_section(const Analysis& analysis, const std::string& versus);
page::Section error_section(const Analysis& analysis);
page::Section curve_section(const Analysis& analysis);
page::Section class_section(const Analysis& analysis);
page::Section confusion_section(const Analysis& analysis);
page::Section note_section(const Analysis& analysis);

// The page's drawings, each as SVG text.

/// What each kind of error costs, as bars.
std::string error_chart(const ErrorCosts& errors);
/// Precision over recall, a curve for each threshold of IoU.
std::string precision_chart(const Analysis& analysis);
/// Precision, recall and F1 over the least score of detections.
std::string score_chart(const OperatingPoints& points);
/// Precision over recall at IoU .5, small and without axes.
std::string small_curve(const CategoryReport& category);
/// A category's AP as a bar, with its interval if known.
std::string ap_bar(const CategoryReport& category, const Interval* interval);
/// Which class is taken for which, as shares of each row.
std::string confusion_chart(const Analysis& analysis);
inline constexpr std::size_t kDrawnDifferences = 30;  // categories: more would fill the page
/// The difference of AP, of all and of the categories that differ most, with its interval.
std::string difference_chart(const Analysis& analysis);

}  // namespace millrace::coco
