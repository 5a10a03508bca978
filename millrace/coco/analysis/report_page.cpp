#include "millrace/coco/analysis/report_page.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "millrace/base/text.h"
#include "millrace/coco/analysis/report_style.h"
#include "millrace/coco/analysis/svg.h"

namespace millrace::coco {
namespace {

/// A share as the page writes it: per cent with one digit.
std::string percent(double share) {
  return share < 0 ? "&ndash;" : fmt::format("{:.1f}", 100 * share);
}

class Page {
 public:
  Page(const Analysis& analysis, const ReportNames& names) : analysis_(analysis), names_(names) {}

  std::string write(IouType iou) && {
    put("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<title>{0}: evaluation</title>\n<style>{1}</style>\n</head>\n<body>\n<main>\n"
        "<h1>{0}</h1>\n<p class=\"soft\">{2} against {3}: {4}, {5}, {6}</p>\n",
        escaped(names_.detections), kReportStyle, iou == IouType::box ? "Boxes" : "Masks",
        escaped(names_.truth), counted(analysis_.images, "image"),
        counted(sum(&CategoryReport::objects), "object"),
        counted(sum(&CategoryReport::detections), "detection"));
    tiles();
    if (analysis_.versus) versus();
    errors();
    curves();
    classes();
    confusions();
    notes();
    out_ += "</main>\n</body>\n</html>\n";
    return std::move(out_);
  }

 private:
  template <class... Arguments>
  void put(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Arguments>(arguments)...);
  }

  std::int64_t sum(std::int64_t CategoryReport::*figure) const {
    std::int64_t all = 0;
    for (const auto& category : analysis_.categories) all += category.*figure;
    return all;
  }

  void tiles() {
    const auto& stats = analysis_.evaluation.stats;
    std::string sure = "IoU .50 to .95";
    if (analysis_.spread && !std::isnan(analysis_.spread->ap.low)) {
      const Interval& ap = analysis_.spread->ap;
      sure = fmt::format("95 % interval {} to {}", percent(ap.low), percent(ap.high));
    }
    put("<div class=\"tiles\">\n<div class=\"tile first\"><b>{} AP</b><span>{}</span></div>\n",
        percent(stats[0]), sure);
    constexpr std::pair<std::size_t, const char*> kTiles[] = {
        {1, "AP50"}, {2, "AP75"}, {3, "AP small"}, {4, "AP medium"}, {5, "AP large"}, {8, "AR"}};
    for (const auto& [i, name] : kTiles)
      put("<div class=\"tile\"><b>{}</b><span>{}</span></div>\n", percent(stats[i]), name);
    out_ += "</div>\n";
  }

  void versus() {
    const Comparison& it = *analysis_.versus;
    const char* style = !it.significant()            ? "unsure"
                        : it.difference.ap.value > 0 ? "better"
                                                     : "worse";
    put("<h2>Compared with {}</h2>\n<p class=\"verdict {}\">{}</p>\n", escaped(names_.versus),
        style, escaped(sentence(it)));
    put("<figure>{}<figcaption>Difference of AP of the classes that differ most (up to {}), with "
        "its 95 % interval: {} draws of the images, the same for both. Of classes that do not "
        "differ, about one in twenty is coloured by chance.</figcaption></figure>\n",
        difference_chart(analysis_), kDrawnDifferences, analysis_.draws);
  }

  void errors() {
    put("<h2>What the errors cost</h2>\n<p class=\"soft\">AP50 that would be gained if the errors "
        "of one kind alone were mended (TIDE, arXiv 2008.08115). They do not add up.</p>\n"
        "<figure>{}</figure>\n",
        error_chart(analysis_.errors.all));
  }

  void curves() {
    const OperatingPoint& best = analysis_.operating.best;
    put("<h2>Precision and recall</h2>\n<div class=\"pair\">\n<figure>{}<figcaption>Mean over "
        "classes, from IoU .50 (strong) to .95 (faint).</figcaption></figure>\n<figure>{}"
        "<figcaption><span class=\"key precision\">Precision</span>, <span class=\"key recall\">"
        "recall</span> and <span class=\"key f1\">F1</span> of all classes together. F1 is best at "
        "score {:.3f}: {:.3f}, precision {:.3f}, recall {:.3f}.</figcaption></figure>\n</div>\n",
        precision_chart(analysis_), score_chart(analysis_.operating), best.score, best.f1,
        best.precision, best.recall);
  }

  void classes() {
    put("<h2>Classes</h2>\n<p class=\"soft\">Weakest first{}. The curve is precision over recall "
        "at IoU .50; the dearest error is the kind that costs the class most AP50.</p>\n"
        "<div class=\"scroll\"><table>\n<thead><tr><th>class</th><th>objects</th>"
        "<th>detections</th><th class=\"left\" colspan=\"2\">AP</th><th>AP50</th><th>AP75</th>"
        "<th>small</th><th>medium</th><th>large</th><th>AR</th><th class=\"left\">curve</th>"
        "<th class=\"left\" colspan=\"2\">dearest error</th></tr></thead>\n<tbody>\n",
        analysis_.spread ? "; the line in the bar is the 95 % interval" : "");
    for (const std::size_t k : weakest_first(analysis_)) {
      const CategoryReport& one = analysis_.categories[k];
      const ErrorCosts& errors = analysis_.errors.categories[k];
      put("<tr><th>{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td>", escaped(one.name),
          one.objects, one.detections, percent(one.stats[0]),
          ap_bar(one, analysis_.spread ? &analysis_.spread->category_ap[k] : nullptr));
      for (const std::size_t i : {1, 2, 3, 4, 5, 8}) put("<td>{}</td>", percent(one.stats[i]));
      put("<td>{}</td>", small_curve(one));
      if (const auto kind = dearest(errors)) {
        const auto e = static_cast<std::size_t>(*kind);
        put("<td class=\"left\">{}</td><td>{:.1f}</td></tr>\n", kErrorNames[e],
            100 * errors.cost[e]);
      } else {
        out_ += "<td></td><td></td></tr>\n";
      }
    }
    out_ += "</tbody></table></div>\n";
  }

  void confusions() {
    constexpr std::size_t kDrawn = 120;  // categories: beyond, nobody could see a cell
    const ConfusionMatrix& matrix = analysis_.confusion;
    put("<h2>Confusions</h2>\n<p class=\"soft\">Detections of score {:.3f} and more (the best F1), "
        "each with the object that it overlaps most at IoU .50. Background as object: nothing is "
        "there. Background as class: not found.</p>\n",
        matrix.score);
    const auto pairs = confused_pairs(matrix, 12);
    if (!pairs.empty()) {
      out_ +=
          "<div class=\"scroll\"><table class=\"narrow\">\n<thead><tr><th>object</th>"
          "<th class=\"left\">taken for</th><th>times</th><th>of its objects</th></tr></thead>\n"
          "<tbody>\n";
      for (const ConfusedPair& pair : pairs)
        put("<tr><th>{}</th><td class=\"left\">{}</td><td>{}</td><td>{:.1f} %</td></tr>\n",
            escaped(analysis_.categories[pair.truth].name),
            escaped(analysis_.categories[pair.found].name), pair.count, 100 * pair.share);
      out_ += "</tbody></table></div>\n";
    }
    if (matrix.categories > 1 && matrix.categories <= kDrawn)
      put("<figure>{}<figcaption>Rows are what is there, columns what was found; strength is the "
          "share of the row. Shares below half a per cent are left out.</figcaption></figure>\n",
          confusion_chart(analysis_));
  }

  void notes() {
    out_ +=
        "<h2>How to read this</h2>\n<p>AP, AR and their parts are COCO's, in per cent, equal to "
        "pycocotools. A wrong detection is a <b>class</b> error where it fits an object of another "
        "class (IoU .5), a <b>location</b> error where it overlaps an object of its class too "
        "little (.1 to .5), <b>both</b> where it is near an object of another class, a "
        "<b>duplicate</b> where a better score has the object already, <b>background</b> where "
        "nothing is near. An object is <b>missed</b> where no detection would find it with its "
        "class or location mended.</p>\n";
    if (analysis_.spread)
      put("<p>Intervals are basic bootstrap intervals from {} of {} with replacement.</p>\n",
          counted(analysis_.draws, "draw"), counted(analysis_.images, "image"));
  }

  const Analysis& analysis_;
  const ReportNames& names_;
  std::string out_;
};

}  // namespace

std::string report_page(const Analysis& analysis, IouType iou, const ReportNames& names) {
  return Page(analysis, names).write(iou);
}

}  // namespace millrace::coco
