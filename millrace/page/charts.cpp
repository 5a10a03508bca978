#include "millrace/page/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "millrace/page/html.h"

namespace millrace::page {

std::string bar_chart(std::span<const Bar> bars, std::string_view about) {
  if (bars.empty()) return "";
  constexpr double kBar = 240, kRow = 30, kLetter = 7.2;
  double most = 0, label = 40, note = 0;
  for (const Bar& bar : bars) {
    most = std::max(most, bar.value);
    label = std::max(
        label, 16 + kLetter * static_cast<double>(std::min<std::size_t>(bar.name.size(), 28)));
    note = std::max(note, kLetter * static_cast<double>(bar.note.size()));
  }
  if (most <= 0) most = 1;
  std::string out = begin_svg(label + kBar + 72 + note, kRow * static_cast<double>(bars.size()) + 8,
                              "chart", about);
  double y = 0;
  for (const Bar& bar : bars) {
    const double width = std::max(1., kBar * bar.value / most);
    words(out, label - 10, y + 19, "label end", bar.name);
    rect(out, label, y + 5, width, kRow - 10, bar.is_other ? "bar other" : "bar");
    words(out, label + width + 8, y + 19, "value",
          bar.text.empty() ? fmt::format("{:g}", bar.value) : bar.text);
    words(out, label + width + 68, y + 19, "note", bar.note);
    y += kRow;
  }
  return out + "</svg>\n";
}

std::string histogram(std::span<const double> edges, std::span<const std::int64_t> counts,
                      std::string_view x_name, std::string_view about) {
  if (counts.empty()) return "";
  constexpr double kLeft = 50, kTop = 12, kWidth = 400, kHeight = 180;
  std::int64_t most = 1;
  for (const std::int64_t count : counts) most = std::max(most, count);
  const double high = round_up(static_cast<double>(most));
  const double step = kWidth / static_cast<double>(counts.size());
  std::string out = begin_svg(kLeft + kWidth + 16, kTop + kHeight + 44, "chart", about);
  for (const double part : {0., .5, 1.}) {
    const double y = kTop + kHeight * (1 - part);
    stroke(out, kLeft, y, kLeft + kWidth, y, part == 0 ? "axis" : "grid");
    words(out, kLeft - 6, y + 4, "tick end", fmt::format("{:g}", high * part));
  }
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double height = kHeight * static_cast<double>(counts[i]) / high;
    rect(out, kLeft + step * static_cast<double>(i) + .5, kTop + kHeight - height,
         std::max(step - 1, .5), height, "bar",
         fmt::format("{:g} to {:g}: {}", edges[i], edges[i + 1], counts[i]));
  }
  const std::size_t every = std::max<std::size_t>(1, (edges.size() + 7) / 8);
  for (std::size_t i = 0; i < edges.size(); i += every)
    words(out, kLeft + step * static_cast<double>(i), kTop + kHeight + 16, "tick middle",
          fmt::format("{:.3g}", edges[i]));
  words(out, kLeft + kWidth / 2, kTop + kHeight + 36, "name middle", x_name);
  return out + "</svg>\n";
}

std::string heat_map(std::span<const std::string> names, std::span<const std::int64_t> counts,
                     std::string_view about) {
  const std::size_t n = names.size();
  const auto side = static_cast<double>(n);
  const double cell = std::clamp(640 / side, 9., 40.), label = std::min(150., 60 + 4 * cell);
  std::string out =
      begin_svg(label + cell * side + 4, label + cell * side + 4, "chart matrix", about);
  out += fmt::format("<g style=\"font-size:{:.0f}px\">\n", std::min(12., cell * .9));
  for (std::size_t row = 0; row < n; ++row) {
    const double y = label + cell * static_cast<double>(row);
    words(out, label - 5, y + cell * .72, "label end", names[row]);
    out += fmt::format(
        "<text class=\"label\" transform=\"translate({:.1f} {:.1f}) rotate(-90)\">{}</text>\n",
        y + cell * .72, label - 5, escaped(names[row]));
    std::int64_t sum = 0;
    for (std::size_t column = 0; column < n; ++column) sum += counts[row * n + column];
    rect(out, label, y, cell * side, cell, "track");
    for (std::size_t column = 0; column < n; ++column) {
      const std::int64_t count = counts[row * n + column];
      const double share =
          static_cast<double>(count) / static_cast<double>(std::max<std::int64_t>(sum, 1));
      if (share < .005) continue;  // would not be seen
      rect(out, label + cell * static_cast<double>(column) + .5, y + .5, cell - 1, cell - 1,
           row == column ? "right" : "wrong",
           fmt::format("{} as {}: {} ({:.1f} %)", names[row], names[column], count, 100 * share),
           .08 + .92 * std::sqrt(share));
      if (cell >= 28)
        words(out, label + cell * (static_cast<double>(column) + .5), y + cell * .62,
              "count middle", std::to_string(count));
    }
  }
  return out + "</g></svg>\n";
}

}  // namespace millrace::page
