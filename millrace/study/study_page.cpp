#include "millrace/study/study_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#include "millrace/base/text.h"
#include "millrace/page/html.h"
#include "millrace/page/page.h"
#include "millrace/page/svg.h"
#include "millrace/study/study_text.h"

namespace millrace::study {
namespace {

using page::escaped;

std::string percent(double share) {
  return std::isnan(share) ? "&ndash;" : fmt::format("{:.2f}", 100 * share);
}

std::string verdicts(const StudyResult& result) {
  std::string out;
  for (const Difference& it : result.differences) {
    const bool counts = it.has_several_seeds() && it.is_real();
    out += fmt::format("<p class=\"verdict{}\"><b>{} against {}, {}.</b> {}</p>\n",
                       !counts                 ? ""
                       : it.interval.value > 0 ? " better"
                                               : " worse",
                       escaped(result.variants[it.variant].name), escaped(result.variants[0].name),
                       title_of(it.figure), escaped(sentence(it, result.images)));
  }
  if (const auto text = outlook_text(result.variants[0]);
      result.variants.size() == 1 && !text.empty())
    out += fmt::format("<p class=\"verdict\">{}</p>\n", escaped(text));
  for (const auto& remark : result.remarks)
    out += fmt::format("<p class=\"verdict warning\">{}</p>\n", escaped(remark));
  return out;
}

/// A dot for each seed in a row for each variant, with the mean and its interval.
std::string dots(const StudyResult& result, const std::string& figure) {
  constexpr double kLeft = 30, kWidth = 640, kRow = 62, kTop = 8;
  double low = 1, high = 0;
  std::vector<std::pair<std::string, const Figure*>> rows;
  for (const auto& variant : result.variants) {
    const Figure* of = variant.find(figure);
    if (!of) continue;
    rows.emplace_back(variant.name, of);
    low = std::min(low, std::ranges::min(of->values));
    high = std::max(high, std::ranges::max(of->values));
    if (std::isnan(of->low)) continue;
    low = std::min(low, of->low), high = std::max(high, of->high);
  }
  if (rows.empty()) return "";
  const double unit = page::round_up(std::max(high - low, 1e-4) / 5);
  low = std::floor(low / unit) * unit;
  const int steps = std::max(1, static_cast<int>(std::ceil((high - low) / unit - 1e-9)));
  high = low + steps * unit;
  const auto x = [&](double value) {
    return kLeft + kWidth * (std::clamp(value, low, high) - low) / (high - low);
  };
  const double bottom = kTop + kRow * static_cast<double>(rows.size());
  std::string out = page::begin_svg(kLeft + kWidth + 30, bottom + 44, "chart",
                                    fmt::format("{} of each seed", title_of(figure)));
  for (int i = 0; i <= steps; ++i) {
    const double at = low + i * unit;
    page::stroke(out, x(at), kTop, x(at), bottom, "grid");
    page::words(out, x(at), bottom + 16, "tick middle", fmt::format("{:.4g}", 100 * at));
  }
  page::words(out, kLeft + kWidth / 2, bottom + 36, "name middle",
              fmt::format("{}; a dot per seed, the line is the 95 % interval of their mean",
                          title_of(figure)));
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const auto& [name, of] = rows[r];
    const double top = kTop + kRow * static_cast<double>(r), y = top + 40;
    page::words(out, kLeft, top + 20, "label", name);
    if (!std::isnan(of->low)) {
      page::stroke(out, x(of->low), y, x(of->high), y, "unsure");
      page::stroke(out, x(of->moments.mean), y - 9, x(of->moments.mean), y + 9, "unsure");
    }
    for (std::size_t s = 0; s < of->values.size(); ++s)
      fmt::format_to(std::back_inserter(out),
                     "<circle class=\"c{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\" "
                     "fill-opacity=\".75\"><title>{:.2f}</title></circle>\n",
                     r % 8, x(of->values[s]), y, 100 * of->values[s]);
  }
  return out + "</svg>\n";
}

page::Section figure_section(const StudyResult& result) {
  const std::vector<page::Column> columns{
      {"variant", true}, {"figure", true},    {"mean"}, {"sd"}, {"min"},
      {"max"},           {"95 % of the mean"}};
  std::vector<std::vector<std::string>> rows;
  for (const auto& variant : result.variants)
    for (const Figure& figure : variant.figures) {
      const auto [low, high] = std::ranges::minmax(figure.values);
      rows.push_back({escaped(variant.name), title_of(figure.name), percent(figure.moments.mean),
                      percent(figure.moments.deviation), percent(low), percent(high),
                      std::isnan(figure.low)
                          ? "&ndash;"
                          : fmt::format("{:.2f} .. {:.2f}", 100 * figure.low, 100 * figure.high)});
    }
  return {"figures", "Figures", page::table(columns, rows)};
}

page::Section dot_section(const StudyResult& result) {
  std::string body = dots(result, "bbox/AP");
  if (const auto masks = dots(result, "segm/AP"); !masks.empty())
    body += "<h3>Masks</h3>\n" + masks;
  return {"seeds", "Each seed", body};
}

page::Section difference_section(const StudyResult& result) {
  const std::vector<page::Column> columns{
      {"variant", true},      {"figure", true}, {"difference"},   {"95 % interval"}, {"p"},
      {"bootstrap interval"}, {"bootstrap p"},  {"sd of a seed"}, {"sd of images"}};
  std::vector<std::vector<std::string>> rows;
  const auto interval = [](const coco::Interval& it) {
    return fmt::format("{:+.2f} .. {:+.2f}", 100 * it.low, 100 * it.high);
  };
  for (const Difference& it : result.differences)
    rows.push_back({escaped(result.variants[it.variant].name), title_of(it.figure),
                    fmt::format("{:+.2f}", 100 * it.interval.value), interval(it.interval),
                    fmt::format("{:.3f}", it.p), interval(it.bootstrap),
                    fmt::format("{:.3f}", it.bootstrap_p), percent(it.noise.seeds),
                    percent(it.noise.images)});
  return {"differences", fmt::format("Differences from {}", result.variants[0].name),
          page::table(columns, rows)};
}

page::Section run_section(const StudyResult& result, const std::filesystem::path& folder) {
  const std::vector<page::Column> columns{{"variant", true}, {"seed"}, {"box AP"},
                                          {"mask AP"},       {"time"}, {"run", true}};
  std::vector<std::vector<std::string>> rows;
  for (const auto& variant : result.variants)
    for (std::size_t s = 0; s < variant.seeds.size(); ++s) {
      const auto value = [&](const char* name) {
        const Figure* of = variant.find(name);
        return of ? percent(of->values[s]) : std::string("&ndash;");
      };
      const auto place = variant.folders[s].lexically_relative(folder).string();
      rows.push_back({escaped(variant.name), std::to_string(variant.seeds[s]), value("bbox/AP"),
                      value("segm/AP"), duration_text(variant.seconds[s]),
                      fmt::format("<a href=\"{0}/report.html\">{0}</a>", escaped(place))});
    }
  return {"runs", "Runs", page::table(columns, rows)};
}

}  // namespace

std::string study_page(const StudyResult& result, const std::filesystem::path& folder) {
  page::Page page;
  page.title = "Study of " + result.name;
  page.subtitle = fmt::format("{} of {} done, {}; {}", result.done,
                              counted(static_cast<long long>(result.runs), "run"),
                              counted(static_cast<long long>(result.images), "image"),
                              counted(result.maths_threads, "maths thread"));
  page.top = verdicts(result);
  page.sections = {dot_section(result), figure_section(result)};
  if (!result.differences.empty()) page.sections.push_back(difference_section(result));
  page.sections.push_back(run_section(result, folder));
  page.footer = fmt::format(
      "Made by <code>trainer study</code>. The interval and p of a difference cover the chance in "
      "training and the choice of the images; those of the bootstrap are from {} resamples of "
      "seeds and images, and with few seeds hold less, or more, than they say.",
      result.draws);
  return page.html();
}

}  // namespace millrace::study
