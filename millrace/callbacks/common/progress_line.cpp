#include "millrace/callbacks/common/progress_line.h"

#include <fmt/format.h>

#include <algorithm>

#include "millrace/base/progress_bar.h"
#include "millrace/base/text.h"

namespace millrace {
namespace {

std::string losses_text(const Scalars& losses) {
  if (losses.empty()) return "";
  auto text = fmt::format("  loss {:.3f}", losses[0].second);
  std::string parts;
  for (std::size_t i = 1; i < losses.size(); ++i)
    parts += fmt::format("{}{} {:.3f}", i > 1 ? ", " : "", losses[i].first, losses[i].second);
  return parts.empty() ? text : text + " (" + parts + ")";
}

}  // namespace

std::string progress_line(const ProgressFigures& f, int bar_width, int columns) {
  auto line = fmt::format("epoch {:.2f}/{:.4g} ", f.epoch, f.epochs);
  if (bar_width > 0)
    line += progress_bar(f.steps > 0 ? double(f.step) / double(f.steps) : 0, bar_width);
  line += fmt::format("step {}/{}  {} left", f.step, f.steps, duration_text(f.left_s));
  const auto losses = losses_text(f.losses);
  const auto rest = fmt::format("  {:.1f} images/s  data wait {:.0f}%  lr {:.3g}", f.images_per_s,
                                100 * f.data_wait_share, f.lr);
  const auto fits = [&](const std::string& text) {
    return columns <= 0 ||
           line.size() + text.size() + rest.size() <= static_cast<std::size_t>(columns);
  };
  // A narrow terminal drops the single losses first, then the end of the line.
  line += (fits(losses) ? losses
                        : losses_text({f.losses.begin(), f.losses.begin() + !f.losses.empty()})) +
          rest;
  if (columns > 0) line.resize(std::min(line.size(), static_cast<std::size_t>(columns)));
  return line;
}

}  // namespace millrace
