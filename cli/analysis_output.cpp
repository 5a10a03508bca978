#include "millrace/cli/analysis_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "millrace/coco/evaluation/evaluate.h"

namespace millrace::cli {
namespace {

using coco::Analysis;
using coco::CategoryReport;
using coco::ErrorCosts;
using coco::Interval;
using coco::kErrorKinds;
using coco::kErrorNames;
using coco::kStatNames;

/// Returns a fraction in per cent, right-aligned in five columns; a dash if undefined.
std::string percent(double share) {
  return share < 0 ? "    -" : fmt::format("{:5.1f}", 100 * share);
}

template <class... Arguments>
void put(std::string& out, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  out += fmt::format(format, std::forward<Arguments>(arguments)...);
}

std::size_t longest_name(const Analysis& analysis) {
  std::size_t longest = 5;
  for (const auto& one : analysis.categories) longest = std::max(longest, one.name.size());
  return longest;
}

void put_errors(std::string& out, const ErrorCosts& errors) {
  out += "\nErrors at IoU 0.50: AP50 gained if only this kind is corrected\n";
  for (std::size_t e = 0; e < kErrorKinds; ++e) {
    put(out, "  {:<12}{:+6.1f}{:10} {}\n", kErrorNames[e], 100 * errors.cost[e], errors.count[e],
        static_cast<coco::ErrorKind>(e) == coco::ErrorKind::missed ? "objects" : "detections");
  }
  put(out, "  {:<12}{:+6.1f}\n  {:<12}{:+6.1f}\n", "all wrong", 100 * errors.false_positives,
      "all unfound", 100 * errors.false_negatives);
}

void put_classes(std::string& out, const Analysis& analysis) {
  const std::size_t width = longest_name(analysis);
  put(out,
      "\n{:<{}}  objects  detections     AP{}   AP50   AP75    APs    APm    APl     AR  dearest "
      "error\n",
      "class", width, analysis.spread ? "    95 % interval" : "");
  auto order = weakest_first(analysis);
  std::ranges::reverse(order);  // weakest last: on a terminal the last lines remain visible
  for (const std::size_t k : order) {
    const CategoryReport& one = analysis.categories[k];
    put(out, "{:<{}}  {:7}  {:10}  {}", one.name, width, one.objects, one.detections,
        percent(one.stats[0]));
    if (analysis.spread) {
      const Interval& ap = analysis.spread->category_ap[k];
      put(out, "  {:5.1f} .. {:5.1f}", 100 * ap.low, 100 * ap.high);
    }
    for (const std::size_t i : {1, 2, 3, 4, 5, 8}) put(out, "  {}", percent(one.stats[i]));
    const ErrorCosts& errors = analysis.errors.categories[k];
    if (const auto kind = costliest_kind(errors)) {
      const auto e = static_cast<std::size_t>(*kind);
      put(out, "  {} {:.1f}", kErrorNames[e], 100 * errors.cost[e]);
    }
    out += '\n';
  }
}

std::string csv_text(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return std::string(text);
  std::string result = "\"";
  for (const char c : text) result += c == '"' ? std::string("\"\"") : std::string(1, c);
  return result + '"';
}

std::string csv_share(double value) {
  return std::isnan(value) || value == -1 ? "" : fmt::format("{}", value);
}

void put_analysis(std::string& out, const Analysis& analysis) {
  put_errors(out, analysis.errors.all);
  const auto& best = analysis.operating.best;
  put(out, "\nBest F1 {:.3f} at score {:.3f}: precision {:.3f}, recall {:.3f}\n", best.f1,
      best.score, best.precision, best.recall);
  const auto pairs = coco::confused_pairs(analysis.confusion, 10);
  if (!pairs.empty()) out += "\nMost frequent confusions at or above that score\n";
  for (const auto& pair : pairs) {
    put(out, "  {} detected as {}: {} times, {:.1f} % of its objects\n",
        analysis.categories[pair.truth].name, analysis.categories[pair.found].name, pair.count,
        100 * pair.share);
  }
  put_classes(out, analysis);
}

void put_spread(std::string& out, const Analysis& analysis) {
  put(out, "\nBootstrap over images, {} resamples\n", analysis.draws);
  const auto& spread = *analysis.spread;
  for (const auto& [name, one] : {std::pair("AP", spread.ap), std::pair("AP50", spread.ap50)})
    put(out, "{:<5} {:.2f}, 95 % interval {:.2f} .. {:.2f}\n", name, 100 * one.value, 100 * one.low,
        100 * one.high);
}

void put_versus(std::string& out, const Analysis& analysis) {
  const auto& versus = *analysis.versus;
  put(out, "\n{}\n", sentence(versus));
  const std::size_t width = longest_name(analysis);
  for (const std::size_t k : most_different(versus, 10)) {
    const Interval& one = versus.difference.category_ap[k];
    put(out, "  {:<{}} {:+6.1f}  {:+6.1f} .. {:+6.1f}  p = {:.3f}\n", analysis.categories[k].name,
        width, 100 * one.value, 100 * one.low, 100 * one.high, versus.category_p[k]);
  }
}

}  // namespace

std::string analysis_text(const Analysis& analysis, bool analyzed) {
  std::string out;
  if (analysis.spread) put_spread(out, analysis);
  if (analyzed) put_analysis(out, analysis);
  if (analysis.versus) put_versus(out, analysis);
  return out;
}

std::string analysis_csv(const Analysis& analysis) {
  std::string out = "category_id,name,objects,detections";
  for (const char* name : kStatNames) put(out, ",{}", name);
  for (const auto name : kErrorNames) put(out, ",{0}_cost,{0}_count", name);
  if (analysis.spread) out += ",AP_low,AP_high";
  if (analysis.versus) out += ",difference,difference_low,difference_high,p";
  out += "\n";
  for (std::size_t k = 0; k < analysis.categories.size(); ++k) {
    const CategoryReport& one = analysis.categories[k];
    put(out, "{},{},{},{}", one.id, csv_text(one.name), one.objects, one.detections);
    for (const double value : one.stats) put(out, ",{}", csv_share(value));
    const ErrorCosts& errors = analysis.errors.categories[k];
    for (std::size_t e = 0; e < kErrorKinds; ++e)
      put(out, ",{},{}", errors.cost[e], errors.count[e]);
    if (analysis.spread) {
      const Interval& ap = analysis.spread->category_ap[k];
      put(out, ",{},{}", csv_share(ap.low), csv_share(ap.high));
    }
    if (analysis.versus) {
      const Interval& ap = analysis.versus->difference.category_ap[k];
      // A difference may be -1, so only NaN means undefined.
      for (const double value : {ap.value, ap.low, ap.high})
        out += std::isnan(value) ? "," : fmt::format(",{}", value);
      put(out, ",{}", analysis.versus->category_p[k]);
    }
    out += "\n";
  }
  return out;
}

}  // namespace millrace::cli
