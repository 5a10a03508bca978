#include "millrace/cli/predict/prediction.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "millrace/base/progress_bar.h"
#include "millrace/base/text.h"
#include "millrace/trainer/evaluation/evaluation.h"

namespace millrace::cli {

std::vector<coco::Overlay> Prediction::overlays(const std::vector<DetectedObject>& found,
                                                std::map<std::string, int>* counts) const {
  std::vector<coco::Overlay> shown;
  for (const auto& object : found) {
    const auto label = static_cast<std::size_t>(object.label);
    if (object.score < score || split.category_ids.at(label) == kNoCategory) continue;
    shown.push_back(
        {.box = object.box, .label = object.label, .score = object.score, .mask = object.mask});
    if (counts) ++(*counts)[split.classes.at(label)];
  }
  return shown;
}

coco::Detections Prediction::detections(const std::vector<DetectedObject>& found,
                                        std::int64_t image_id) const {
  coco::Detections all;
  for (const auto& object : found)
    if (auto one = as_coco(object, image_id, split.category_ids); one.category_id != kNoCategory)
      all.add(one);
  return all;
}

std::string counts_text(const std::map<std::string, int>& counts) {
  std::vector<std::string> texts;
  for (const auto& [name, count] : counts) texts.push_back(fmt::format("{} {}", count, name));
  return texts.empty() ? "no objects" : joined(texts);
}

PredictionProgress::PredictionProgress(std::string noun, std::int64_t before, std::int64_t all)
    : is_shown_(shows_progress()), noun_(std::move(noun)), before_(before), all_(all) {}

PredictionProgress::~PredictionProgress() {
  if (is_shown_) end_terminal_line();
}

bool PredictionProgress::owns_terminal() const { return is_shown_ && ::isatty(STDOUT_FILENO) != 0; }

void PredictionProgress::show(std::int64_t done, const std::string& note) {
  constexpr double kRedrawSeconds = 0.1;
  constexpr int kBarWidth = 12;  // characters
  if (!is_shown_ || (done != all_ && seconds_since(shown_) < kRedrawSeconds)) return;
  shown_ = Clock::now();
  const auto seconds = seconds_since(began_);
  const auto speed = static_cast<double>(done - before_) / seconds;
  auto text = all_ > 0
                  ? progress_bar(static_cast<double>(done) / static_cast<double>(all_), kBarWidth)
                  : std::string();
  text += fmt::format("{} {}", noun_, done);
  if (all_ > 0) text += fmt::format("/{}", all_);
  const auto speed_text = fmt::format("  {:.1f} {}s/s", speed, noun_);
  if (note.empty()) text += speed_text;
  if (all_ > done && speed > 0)
    text += fmt::format("  {} left", duration_text(static_cast<double>(all_ - done) / speed));
  if (!note.empty()) text += "  " + note + speed_text;  // a narrow terminal truncates the end
  show_terminal_line(std::move(text));
}

}  // namespace millrace::cli
