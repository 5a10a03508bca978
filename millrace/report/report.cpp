#include "millrace/report/report.h"

#include <fmt/format.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "millrace/base/text.h"
#include "millrace/coco/analysis/report_page.h"
#include "millrace/coco/evaluation/matching.h"
#include "millrace/page/html.h"
#include "millrace/report/head_section.h"
#include "millrace/report/loss_section.h"
#include "millrace/report/metric_charts.h"
#include "millrace/report/run_sections.h"
#include "millrace/report/score_section.h"
#include "millrace/report/speed_section.h"

namespace millrace::report {
namespace {

using page::escaped;
using page::Section;

/// The scores of a run, or why there are none.
struct Scored {
  std::optional<RunScores> scores;
  std::string why_not;  // a sentence without its full stop
};

Scored scored(const RunFiles& run, const ReportOptions& options, const Scored* reference) {
  Scored result;
  if (!run.newest_results()) {
    result.why_not =
        "no detections yet: [callbacks.evaluate] writes them into detections/ at each evaluation";
    return result;
  }
  const RunScores* with = reference && reference->scores ? &*reference->scores : nullptr;
  try {
    Truth truth = options.truth(run);
    if (with && same_truth(*truth.annotations, *with->truth.annotations))
      truth.annotations = with->truth.annotations;
    else
      with = nullptr;
    result.scores = score(run, std::move(truth), options.draws, options.threads, with);
  } catch (const std::exception& problem) {
    result.why_not = fmt::format("its detections cannot be scored: {}", problem.what());
  }
  return result;
}

/// What the run wrote when it was evaluated, if that is something else.
std::string contradiction(const RunFiles& run, const RunScores& scores) {
  const std::string prefix = scores.results.weights.empty() ? "" : scores.results.weights + "/";
  for (const MetricValue& one : run.metrics.of(prefix + "bbox/AP")) {
    const double ap = scores.boxes.evaluation.stats[0];
    if (one.step != scores.results.step || std::abs(one.value - ap) < 1e-9) continue;
    return fmt::format(
        "<p class=\"verdict warning\">metrics.jsonl says AP {:.2f} at step {}, but its detections "
        "now score {:.2f}: the annotations have changed since, or some images could not be read "
        "then.</p>\n",
        100 * one.value, one.step, 100 * ap);
  }
  return "";
}

std::string of_step(const RunScores& scores) {
  return fmt::format("step {}{}", scores.results.step,
                     scores.results.weights.empty()
                         ? std::string()
                         : fmt::format(", weights of {}", escaped(scores.results.weights)));
}

std::string tiles_of(const RunFiles& run, const RunScores& scores) {
  std::string out = fmt::format("<p class=\"soft\">Scores of {} over {}, {}{}.</p>\n",
                                of_step(scores), counted(scores.boxes.images, "image"),
                                counted(static_cast<long long>(scores.found.size()), "detection"),
                                scores.masks ? "; boxes, then masks" : "");
  out += coco::score_tiles(scores.boxes);
  if (scores.masks) out += coco::score_tiles(*scores.masks);
  return out + contradiction(run, scores);
}

/// The evaluator's sections; masks below boxes.
std::vector<Section> analysis_sections(const RunScores& scores) {
  std::vector<Section> all;
  for (auto* section :
       {coco::error_section, coco::curve_section, coco::class_section, coco::confusion_section}) {
    all.push_back(section(scores.boxes));
    if (scores.masks)
      all.back().body = "<h3>Boxes</h3>\n" + all.back().body +
                        "<details><summary>Masks</summary>\n" + section(*scores.masks).body +
                        "</details>\n";
  }
  return all;
}

/// How long a run trained, and that times its devices.
std::pair<std::string, std::string> cost_of(const RunFiles& run) {
  const double seconds = trained_seconds(run, run.metrics.last_time);
  const double hours = device_hours(run);
  return {seconds > 0 ? duration_text(seconds) : "", hours > 0 ? fmt::format("{:.2f}", hours) : ""};
}

std::string comparison_line(const coco::Analysis& analysis, const std::string& name,
                            const std::string& reference, std::string_view what) {
  const auto& it = *analysis.versus;
  const char* style = !it.significant() ? "" : it.difference.ap.value > 0 ? " better" : " worse";
  return fmt::format("<p class=\"verdict{}\"><b>{}, {} against {}.</b> {}</p>\n", style,
                     escaped(name), what, escaped(reference),
                     escaped(verdict(it, name, reference)));
}

/// Final scores of several runs, and what differs from the first.
Section comparison_section(std::span<const RunFiles> runs, const std::vector<Scored>& all,
                           const ReportOptions& options) {
  const std::vector<page::Column> columns{{"run"},    {"AP"},    {"difference"},  {"95 % interval"},
                                          {"p"},      {"AP50"},  {"AP75"},        {"small"},
                                          {"medium"}, {"large"}, {"AR"},          {"mask AP"},
                                          {"step"},   {"time"},  {"device-hours"}};
  std::vector<std::vector<std::string>> rows;
  std::string verdicts, charts;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    std::vector<std::string>& row = rows.emplace_back();
    row.push_back(escaped(runs[r].name));
    const auto [time, hours] = cost_of(runs[r]);
    if (!all[r].scores) {
      row.resize(12, "&ndash;");
      row.push_back(std::to_string(runs[r].metrics.last_step));
      row.push_back(time), row.push_back(hours);
      continue;
    }
    const RunScores& scores = *all[r].scores;
    const auto& stats = scores.boxes.evaluation.stats;
    row.push_back(percent_or_dash(stats[0]));
    const auto& versus = scores.boxes.versus;
    if (versus && versus->a.ap >= 0) {
      const auto& ap = versus->difference.ap;
      row.push_back(fmt::format("{:+.2f}", 100 * ap.value));
      row.push_back(fmt::format("{:+.2f} .. {:+.2f}", 100 * ap.low, 100 * ap.high));
      row.push_back(fmt::format("{:.3f}", versus->p));
      verdicts += comparison_line(scores.boxes, runs[r].name, runs[0].name, "boxes");
      if (scores.masks && scores.masks->versus)
        verdicts += comparison_line(*scores.masks, runs[r].name, runs[0].name, "masks");
      charts += fmt::format(
          "<details{}><summary>{} against {}, class by class</summary>{}"
          "</details>\n",
          runs.size() == 2 ? " open" : "", escaped(runs[r].name), escaped(runs[0].name),
          coco::versus_section(scores.boxes, runs[0].name).body);
    } else {
      row.resize(5, r == 0 ? "" : "&ndash;");
    }
    for (const std::size_t i : {1, 2, 3, 4, 5, 8}) row.push_back(percent_or_dash(stats[i]));
    row.push_back(scores.masks ? percent_or_dash(scores.masks->evaluation.stats[0]) : "");
    row.push_back(std::to_string(scores.results.step));
    row.push_back(time), row.push_back(hours);
  }
  if (verdicts.empty() && options.draws > 0)
    verdicts =
        "<p class=\"verdict warning\">No verdict: that takes detections of two runs on the same "
        "images and classes.</p>\n";
  std::string body = verdicts + page::table(columns, rows);
  body +=
      "<p class=\"soft\">A verdict covers the choice of the validation images: whether other "
      "images "
      "of the same kind could turn the difference round. It does not cover the chance in training "
      "itself: two runs that differ in their seed alone may differ by as much. Where a decision "
      "hangs on a small difference, train each side with a few seeds.</p>\n";
  return {"comparison", "Comparison", body + charts};
}

/// Names of categories that any run has.
std::map<std::int64_t, std::string> class_names_of(const std::vector<Scored>& all) {
  std::map<std::int64_t, std::string> names;
  for (const Scored& one : all)
    if (one.scores)
      for (const auto& category : one.scores->truth.annotations->categories)
        names.emplace(category.id, one.scores->truth.annotations->text(category.name));
  return names;
}

std::string reasons(std::span<const RunFiles> runs, const std::vector<Scored>& all) {
  std::string out;
  for (std::size_t r = 0; r < runs.size(); ++r)
    if (!all[r].scores)
      out += fmt::format("<p class=\"verdict warning\"><b>{}</b>: {}.</p>\n", escaped(runs[r].name),
                         escaped(all[r].why_not));
  return out;
}

page::Page page_of(std::span<const RunFiles> runs, const ReportOptions& options) {
  std::vector<Scored> all;
  for (const RunFiles& run : runs)
    all.push_back(scored(run, options, all.empty() ? nullptr : &all.front()));
  page::Page page;
  std::vector<std::string> names;
  for (const RunFiles& run : runs) names.push_back(run.name);
  page.title = runs.size() == 1 ? names[0] : "Runs " + joined(names);
  page.top = standing_text(runs) + reasons(runs, all);
  PictureLimits limits = options.pictures;
  limits.bytes /= runs.size();
  limits.images = std::max<std::size_t>(1, limits.images / runs.size());
  auto& sections = page.sections;
  const auto add = [&](Section section) {
    if (!section.title.empty()) sections.push_back(std::move(section));
  };
  if (runs.size() == 1 && all[0].scores) page.top += tiles_of(runs[0], *all[0].scores);
  if (runs.size() > 1) add(comparison_section(runs, all, options));
  add(score_section(runs, class_names_of(all)));
  add(loss_section(runs));
  add(speed_section(runs));
  add(head_section(runs));
  bool has_scores = false;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    if (!all[r].scores) continue;
    has_scores = true;
    const RunScores& scores = *all[r].scores;
    auto parts = analysis_sections(scores);
    parts.push_back(picture_section(scores, limits));
    if (runs.size() == 1) {
      for (Section& part : parts) add(std::move(part));
      continue;
    }
    const std::string id = fmt::format("run-{}", r + 1);
    std::string body = tiles_of(runs[r], scores);
    for (const Section& part : parts)
      body += fmt::format("<details><summary>{}</summary>\n{}</details>\n", escaped(part.title),
                          part.body);
    // Ids of galleries are unique in a page
    const std::string mark = "<div class=\"gallery\" id=\"pictures\"";
    if (const auto at = body.find(mark); at != std::string::npos)
      body.replace(at, mark.size(),
                   fmt::format("<div class=\"gallery\" id=\"pictures-{}\"", r + 1));
    add({id, runs[r].name, std::move(body)});
  }
  add(configuration_section(runs));
  add(environment_section(runs));
  for (const Scored& one : all)
    if (has_scores && one.scores) {
      add(coco::note_section(one.scores->boxes));
      break;
    }
  page.footer = "Made by <code>trainer report</code>.";
  return page;
}

}  // namespace

std::string verdict(const coco::Comparison& comparison, const std::string& run,
                    const std::string& reference) {
  if (comparison.a.ap < 0) return "There are no objects to find: nothing to compare.";
  const auto& ap = comparison.difference.ap;
  const std::string figures = fmt::format(
      "{:+.2f} AP ({:.2f} against {:.2f}), 95 % interval {:+.2f} to {:+.2f}, p = {:.3f}",
      100 * ap.value, 100 * comparison.a.ap, 100 * comparison.b.ap, 100 * ap.low, 100 * ap.high,
      comparison.p);
  if (ap.low == 0 && ap.high == 0)
    return fmt::format("{}: no difference, whichever images are drawn.", figures);
  if (!comparison.significant())
    return fmt::format(
        "{}: within noise. Other images of the same kind could as well show the opposite; do not "
        "conclude that either run is better.",
        figures);
  return fmt::format("{}: {} is {} than {} by more than the choice of images explains.", figures,
                     run, ap.value > 0 ? "better" : "worse", reference);
}

std::string report_page(std::span<const RunFiles> runs, const ReportOptions& options) {
  // Reading, too, keeps to the threads
  return coco::in_arena(options.threads, [&] { return page_of(runs, options).html(); });
}

}  // namespace millrace::report
