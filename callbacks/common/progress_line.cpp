#include "millrace/callbacks/common/progress_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "millrace/base/progress_bar.h"
#include "millrace/base/text.h"

namespace millrace {
namespace {

constexpr std::string_view kGap = "  ";

std::string sum_text(const Scalars& losses) {
  return losses.empty() ? "" : fmt::format("loss {:.3f}", losses[0].second);
}

/// Returns " (loss_mask 0.500, ...)"; names are shown without `prefix`.
std::string parts_text(const Scalars& losses, std::string_view prefix = "") {
  std::string parts;
  for (std::size_t i = 1; i < losses.size(); ++i) {
    std::string_view name = losses[i].first;
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
    parts += fmt::format("{}{} {:.3f}", i > 1 ? ", " : "", name, losses[i].second);
  }
  return parts.empty() ? "" : " (" + parts + ")";
}

std::string scores_text(const Scalars& scores) {
  std::string text;
  for (const auto& [name, value] : scores)
    text += fmt::format("{}{} {:.3f}", text.empty() ? "" : ", ", name, value);
  return text;
}

std::string wait_text(const ProgressMetrics& f) {
  return fmt::format("data wait {:.0f}%", 100 * f.data_wait_share);
}

}  // namespace

std::string progress_line(const ProgressMetrics& f) {
  const auto sum = sum_text(f.losses);
  return fmt::format(
      "epoch {:.2f}/{:.4g} step {}/{}  {} left{}{}{}  {:.1f} images/s  {}  lr {:.3g}", f.epoch,
      f.epochs, f.step, f.steps, duration_text(f.left_s), sum.empty() ? "" : kGap, sum,
      parts_text(f.losses), f.images_per_s, wait_text(f), f.lr);
}

std::string progress_line(const ProgressMetrics& f, int columns) {
  constexpr int kLeastBar = 6, kMostBar = 24, kFrame = 2;  // characters
  constexpr double kMuchWait = 0.1;
  enum { epoch, bar, step, left, loss, parts, scores, speed, wait, lr };
  std::vector<std::string> pieces = {fmt::format("epoch {:.2f}/{:.4g}", f.epoch, f.epochs),
                                     std::string(kLeastBar + kFrame, ' '),
                                     fmt::format("step {}/{}", f.step, f.steps),
                                     fmt::format("{} left", duration_text(f.left_s)),
                                     sum_text(f.losses),
                                     parts_text(f.losses, "loss_"),
                                     scores_text(f.scores),
                                     fmt::format("{:.1f} images/s", f.images_per_s),
                                     wait_text(f),
                                     fmt::format("lr {:.3g}", f.lr)};
  std::vector<int> by_importance = {left, loss, epoch, bar, scores, speed, step, wait, lr, parts};
  if (f.data_wait_share >= kMuchWait) {  // a problem that the user should see
    std::erase(by_importance, wait);
    by_importance.insert(std::ranges::find(by_importance, scores), wait);
  }
  std::erase_if(by_importance, [&](int piece) { return pieces[std::size_t(piece)].empty(); });
  int used = 0;
  auto shown = by_importance.begin();
  for (; shown != by_importance.end(); ++shown) {
    const auto gap = shown == by_importance.begin() || *shown == parts ? 0 : kGap.size();
    const auto length = static_cast<int>(pieces[std::size_t(*shown)].size() + gap);
    if (used + length > columns && shown != by_importance.begin()) break;
    used += length;
  }
  by_importance.erase(shown, by_importance.end());
  std::ranges::sort(by_importance);
  if (std::ranges::count(by_importance, bar)) {
    const int width = std::clamp(kLeastBar + columns - used, kLeastBar, kMostBar);
    auto& text = pieces[bar];
    text = progress_bar(f.steps > 0 ? double(f.step) / double(f.steps) : 0, width);
    text.pop_back();
  }
  std::string line;
  for (const int piece : by_importance) {
    if (!line.empty() && piece != parts) line += kGap;
    line += pieces[std::size_t(piece)];
  }
  line.resize(std::min(line.size(), static_cast<std::size_t>(std::max(columns, 0))));
  return line;
}

}  // namespace millrace
