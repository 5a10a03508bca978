#include "millrace/coco/analysis/report_page.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <utility>

#include "millrace/base/text.h"
#include "millrace/page/html.h"

namespace millrace::coco {

using page::escaped;

namespace {

/// A share as the page writes it: per cent with one digit.
std::string percent(double share) {
  return share < 0 ? "&ndash;" : fmt::format("{:.1f}", 100 * share);
}

template <class... Arguments>
void put(std::string& out, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Arguments>(arguments)...);
}

}  // namespace

std::string score_tiles(const Analysis& analysis) {
  std::string out;
  const auto& stats = analysis.evaluation.stats;
  std::string sure = "IoU .50 to .95";
  if (analysis.spread && !std::isnan(analysis.spread->ap.low)) {
    const Interval& ap = analysis.spread->ap;
    sure = fmt::format("95 % interval {} to {}", percent(ap.low), percent(ap.high));
  }
  put(out, "<div class=\"tiles\">\n<div class=\"tile first\"><b>{} AP</b><span>{}</span></div>\n",
      percent(stats[0]), sure);
  constexpr std::pair<std::size_t, const char*> kTiles[] = {
      {1, "AP50"}, {2, "AP75"}, {3, "AP small"}, {4, "AP medium"}, {5, "AP large"}, {8, "AR"}};
  for (const auto& [i, name] : kTiles)
    put(out, "<div class=\"tile\"><b>{}</b><span>{}</span></div>\n", percent(stats[i]), name);
  return out + "</div>\n";
}

page::Section versus_section(const Analysis& analysis, const std::string& versus) {
  std::string out;
  const Comparison& it = *analysis.versus;
  const char* style = !it.significant()            ? "unsure"
                      : it.difference.ap.value > 0 ? "better"
                                                   : "worse";
  put(out, "<p class=\"verdict {}\">{}</p>\n", style, escaped(sentence(it)));
  put(out,
      "<figure>{}<figcaption>Difference of AP of the classes that differ most (up to {}), with "
      "its 95 % interval: {} draws of the images, the same for both. Of classes that do not "
      "differ, about one in twenty is coloured by chance.</figcaption></figure>\n",
      difference_chart(analysis), kDrawnDifferences, analysis.draws);
  return {"versus", "Compared with " + versus, std::move(out)};
}

page::Section error_section(const Analysis& analysis) {
  std::string out;
  put(out,
      "<p class=\"soft\">AP50 that would be gained if the errors "
      "of one kind alone were mended (TIDE, arXiv 2008.08115). They do not add up.</p>\n"
      "<figure>{}</figure>\n",
      error_chart(analysis.errors.all));
  return {"errors", "What the errors cost", std::move(out)};
}

page::Section curve_section(const Analysis& analysis) {
  std::string out;
  const OperatingPoint& best = analysis.operating.best;
  put(out,
      "<div class=\"pair\">\n<figure>{}<figcaption>Mean over "
      "classes, from IoU .50 (strong) to .95 (faint).</figcaption></figure>\n<figure>{}"
      "<figcaption><span class=\"key precision\">Precision</span>, <span class=\"key recall\">"
      "recall</span> and <span class=\"key f1\">F1</span> of all classes together. F1 is best at "
      "score {:.3f}: {:.3f}, precision {:.3f}, recall {:.3f}.</figcaption></figure>\n</div>\n",
      precision_chart(analysis), score_chart(analysis.operating), best.score, best.f1,
      best.precision, best.recall);
  return {"curves", "Precision and recall", std::move(out)};
}

page::Section class_section(const Analysis& analysis) {
  std::string out;
  put(out,
      "<p class=\"soft\">Weakest first{}. The curve is precision over recall "
      "at IoU .50; the dearest error is the kind that costs the class most AP50.</p>\n"
      "<div class=\"scroll\"><table>\n<thead><tr><th>class</th><th>objects</th>"
      "<th>detections</th><th class=\"left\" colspan=\"2\">AP</th><th>AP50</th><th>AP75</th>"
      "<th>small</th><th>medium</th><th>large</th><th>AR</th><th class=\"left\">curve</th>"
      "<th class=\"left\" colspan=\"2\">dearest error</th></tr></thead>\n<tbody>\n",
      analysis.spread ? "; the line in the bar is the 95 % interval" : "");
  for (const std::size_t k : weakest_first(analysis)) {
    const CategoryReport& one = analysis.categories[k];
    const ErrorCosts& errors = analysis.errors.categories[k];
    put(out, "<tr><th>{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td>", escaped(one.name),
        one.objects, one.detections, percent(one.stats[0]),
        ap_bar(one, analysis.spread ? &analysis.spread->category_ap[k] : nullptr));
    for (const std::size_t i : {1, 2, 3, 4, 5, 8}) put(out, "<td>{}</td>", percent(one.stats[i]));
    put(out, "<td>{}</td>", small_curve(one));
    if (const auto kind = dearest(errors)) {
      const auto e = static_cast<std::size_t>(*kind);
      put(out, "<td class=\"left\">{}</td><td>{:.1f}</td></tr>\n", kErrorNames[e],
          100 * errors.cost[e]);
    } else {
      out += "<td></td><td></td></tr>\n";
    }
  }
  out += "</tbody></table></div>\n";
  return {"classes", "Classes", std::move(out)};
}

page::Section confusion_section(const Analysis& analysis) {
  std::string out;
  constexpr std::size_t kDrawn = 120;  // categories: beyond, nobody could see a cell
  const ConfusionMatrix& matrix = analysis.confusion;
  put(out,
      "<p class=\"soft\">Detections of score {:.3f} and more (the best F1), "
      "each with the object that it overlaps most at IoU .50. Background as object: nothing is "
      "there. Background as class: not found.</p>\n",
      matrix.score);
  const auto pairs = confused_pairs(matrix, 12);
  if (!pairs.empty()) {
    out +=
        "<div class=\"scroll\"><table class=\"narrow\">\n<thead><tr><th>object</th>"
        "<th class=\"left\">taken for</th><th>times</th><th>of its objects</th></tr></thead>\n"
        "<tbody>\n";
    for (const ConfusedPair& pair : pairs)
      put(out, "<tr><th>{}</th><td class=\"left\">{}</td><td>{}</td><td>{:.1f} %</td></tr>\n",
          escaped(analysis.categories[pair.truth].name),
          escaped(analysis.categories[pair.found].name), pair.count, 100 * pair.share);
    out += "</tbody></table></div>\n";
  }
  if (matrix.categories > 1 && matrix.categories <= kDrawn)
    put(out,
        "<figure>{}<figcaption>Rows are what is there, columns what was found; strength is the "
        "share of the row. Shares below half a per cent are left out.</figcaption></figure>\n",
        confusion_chart(analysis));
  return {"confusions", "Confusions", std::move(out)};
}

page::Section note_section(const Analysis& analysis) {
  std::string out;
  out +=
      "<p>AP, AR and their parts are COCO's, in per cent, equal to "
      "pycocotools. A wrong detection is a <b>class</b> error where it fits an object of another "
      "class (IoU .5), a <b>location</b> error where it overlaps an object of its class too "
      "little (.1 to .5), <b>both</b> where it is near an object of another class, a "
      "<b>duplicate</b> where a better score has the object already, <b>background</b> where "
      "nothing is near. An object is <b>missed</b> where no detection would find it with its "
      "class or location mended.</p>\n";
  if (analysis.spread)
    put(out, "<p>Intervals are basic bootstrap intervals from {} of {} with replacement.</p>\n",
        counted(analysis.draws, "draw"), counted(analysis.images, "image"));
  return {"notes", "How to read this", std::move(out)};
}

std::string report_page(const Analysis& analysis, IouType iou, const ReportNames& names) {
  const auto sum = [&](std::int64_t CategoryReport::*figure) {
    std::int64_t all = 0;
    for (const auto& category : analysis.categories) all += category.*figure;
    return all;
  };
  page::Page whole;
  whole.title = names.detections + ": evaluation";
  whole.subtitle = fmt::format("{} against {}: {}, {}, {}",
                               iou == IouType::box    ? "Boxes"
                               : iou == IouType::mask ? "Masks"
                                                      : "Boundaries",
                               escaped(names.truth), counted(analysis.images, "image"),
                               counted(sum(&CategoryReport::objects), "object"),
                               counted(sum(&CategoryReport::detections), "detection"));
  whole.top = score_tiles(analysis);
  if (analysis.versus) whole.sections.push_back(versus_section(analysis, names.versus));
  for (auto* section :
       {error_section, curve_section, class_section, confusion_section, note_section})
    whole.sections.push_back(section(analysis));
  return whole.html();
}

}  // namespace millrace::coco
