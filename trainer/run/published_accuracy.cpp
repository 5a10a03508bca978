#include "millrace/trainer/run/published_accuracy.h"

#include <fmt/format.h>

namespace millrace {
namespace {

constexpr std::int64_t kLargeStep = 128;  // images per step
constexpr double kLongTraining = 24;      // epochs

}  // namespace

std::vector<std::string> published_warnings(const Recipe& recipe, std::int64_t images_per_step) {
  std::vector<std::string> warnings;
  const auto& optimizer = recipe.optimizer;
  if (images_per_step < kLargeStep || optimizer.type != OptimizerType::sgd) return warnings;
  if (recipe.train.epochs < kLongTraining)
    warnings.push_back(
        fmt::format("{} images per step for {:g} epochs: in published trainings of Mask R-CNN on "
                    "COCO for 12 epochs, 128 images per step reached 0.27 less box AP and 0.20 "
                    "less mask AP than 32 (37.20 and 37.47 box AP); for 24 epochs there was no "
                    "loss. Train longer, or with fewer images per step",
                    images_per_step, recipe.train.epochs));
  if (optimizer.clip_norm == 0 && optimizer.clip_value == 0 && optimizer.trust == Trust::none)
    warnings.push_back(fmt::format(
        "{} images per step without optimizer.clip_norm: about one in twenty published trainings "
        "of Mask R-CNN with 128 images per step diverged; clip_norm = 1.5 prevented it",
        images_per_step));
  return warnings;
}

}  // namespace millrace
