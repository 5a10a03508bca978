#include "millrace/tools/data/adviser.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "millrace/base/text.h"
#include "millrace/dataflow/detection/resize_shortest_edge.h"
#include "millrace/dataflow/engine/dataflow.h"

namespace millrace::advice {
namespace {

constexpr std::int64_t kStep = 32;  // sides are multiples of the backbone's coarsest stride
constexpr std::int64_t kLeastSide = 128;

std::int64_t to_step(double side) {
  return std::max<std::int64_t>(kStep, std::llround(side / kStep) * kStep);
}

/// Returns the short side at which a training image takes about a quarter of a second, estimated
/// from ResNet-18 on two cores (docs/own-data.md); on a GPU, that of the published recipes.
std::int64_t bearable_side(const Machine& machine) {
  if (machine.gpu) return 800;
  if (machine.cores >= 16) return 512;
  if (machine.cores >= 8) return 384;
  return machine.cores >= 4 ? 320 : 256;
}

constexpr double kWorthIt = .01;         // minimum gain for a change of anchors, as a fraction of
                                         // the objects
constexpr std::size_t kLookedAt = 4000;  // images examined in a large data set

CoverageSummary covered(const SeenData& data, const Anchors& anchors, const RuleOf& rule_of) {
  return summary(data, anchor_coverage(data, rule_of(anchors.sizes, anchors.ratios)));
}

/// Sets the sizes with the highest score among those that double from level to level, if they
/// improve the current score by kWorthIt. Returns true if it changes the sizes.
bool take_better_sizes(Anchors& anchors, const SeenData& part, const RuleOf& rule_of,
                       const std::function<double(const CoverageCounts&)>& score) {
  bool is_better = false;
  anchors.chosen = anchors.published = covered(part, anchors, rule_of);
  for (const double first : {4, 6, 8, 12, 16, 20, 24, 32, 40, 48, 64}) {
    auto tried = anchors;
    for (std::size_t level = 0; level < tried.sizes.size(); ++level)
      tried.sizes[level] = std::ldexp(first, static_cast<int>(level));
    tried.chosen = covered(part, tried, rule_of);
    if (score(tried.chosen.all) <= score(anchors.chosen.all) + (is_better ? 0 : kWorthIt)) continue;
    anchors = tried;
    is_better = true;
  }
  return is_better;
}

}  // namespace

cv::Size Sides::of(cv::Size original) const {
  return shortest_edge_size(original, largest(), max_side);
}

Sides choose_sides(const SeenData& original, const Machine& machine) {
  constexpr double kQuarter = .25, kNearlyAll = .95, kLargeObject = 48, kMostProportion = 2.5;
  constexpr double kMostEnlarged = 2, kMostBeyond = 1.5;
  std::vector<double> shorts, proportions, shares;
  for (const auto& image : original.images) {
    const auto [least, most] = std::minmax(image.original.width, image.original.height);
    shorts.push_back(least);
    proportions.push_back(static_cast<double>(most) / least);
    for (const auto& object : original.objects_of(image))
      if (!object.crowd) shares.push_back(object.size() / least);
  }
  Sides sides;
  sides.own_side = std::llround(quantile(shorts, .5));
  const auto own = static_cast<double>(sides.own_side),
             bearable = static_cast<double>(bearable_side(machine));
  const double small = quantile(shares, kQuarter);  // as a fraction of the short side
  double side = std::min(own, bearable);
  if (small > 0 && small * side < kLeastObject)
    side = std::max(side, std::min({kLeastObject / small, kMostEnlarged * own,
                                    (machine.gpu ? 1 : kMostBeyond) * bearable}));
  else if (small > 0 && !machine.gpu)
    side = std::max(std::min(side, kLargeObject / small), std::min(side, .5 * bearable));
  const auto largest = std::max(to_step(side), kLeastSide);
  sides.small_object = small * static_cast<double>(largest);
  sides.too_small = sides.small_object < .75 * kLeastObject && small > 0;
  for (const double factor : {.8, .9})
    sides.short_side.push_back(std::llround(factor * static_cast<double>(largest) / 16) * 16);
  sides.short_side.push_back(largest);
  const double proportion = std::clamp(quantile(proportions, kNearlyAll), 1., kMostProportion);
  sides.max_side = static_cast<std::int64_t>(
                       std::ceil(proportion * static_cast<double>(largest) / kStep - .01)) *
                   kStep;
  return sides;
}

Anchors choose_anchors(const SeenData& seen, const RuleOf& rule_of) {
  const auto part = thinned(seen, kLookedAt);
  const auto half = [](const CoverageCounts& counts) { return counts.recall(0); };
  Anchors anchors;
  take_better_sizes(anchors, part, rule_of, half);
  auto longer = anchors;
  longer.ratios = {.25, .5, 1, 2, 4};
  longer.chosen = covered(part, longer, rule_of);
  return half(longer.chosen.all) > half(anchors.chosen.all) + kWorthIt ? longer : anchors;
}

std::optional<Anchors> better_sizes(const SeenData& seen, Anchors anchors, const RuleOf& rule_of) {
  const auto part = thinned(seen, kLookedAt);
  const double half = covered(part, anchors, rule_of).all.recall(0);
  const bool is_better =
      take_better_sizes(anchors, part, rule_of, [&](const CoverageCounts& counts) {
        return counts.recall(0) < half ? -1 : counts.share(MatchKind::foreground);
      });
  return is_better ? std::optional(anchors) : std::nullopt;
}

std::int64_t choose_batch(std::size_t images, const Machine& machine) {
  const auto quarter = static_cast<std::int64_t>(images / 4);
  return std::min<std::int64_t>(machine.gpu ? 8 : 4, std::max<std::int64_t>(1, quarter));
}

std::int64_t batch_in_memory(std::int64_t batch, const Machine& machine, double image_bytes) {
  constexpr double kShare = .5;  // fraction of the memory; evaluation needs the rest
  const auto most = kShare * machine.memory / std::max(1.0, image_bytes);
  return most < static_cast<double>(batch)
             ? std::max<std::int64_t>(1, std::llround(std::floor(most)))
             : batch;
}

Plan choose_plan(std::size_t images, std::int64_t batch, Start start, bool one_stage) {
  const auto count = static_cast<double>(std::max<std::size_t>(images, 1));
  const double factor = start == Start::detector ? 1. / 3 : start == Start::random ? 1.5 : 1;
  const double epochs = factor * std::clamp(2000 / std::sqrt(count), 12., 300.);
  Plan plan;
  plan.epochs = std::max<std::int64_t>(4, std::llround(epochs));
  const auto steps = [&](std::int64_t of) {
    return count_steps(static_cast<double>(of), std::llround(count), batch);
  };
  plan.steps = steps(plan.epochs);
  plan.warmup = std::clamp<std::int64_t>(plan.steps / 20 / 10 * 10, 1, 1000);
  plan.evaluate_every = std::max<std::int64_t>(1, plan.epochs / 10);
  plan.first_evaluation = steps(plan.evaluate_every);
  plan.lr = start == Start::random ? .025 : start == Start::backbone ? .01 : .004;
  if (one_stage) plan.lr *= .4;
  return plan;
}

std::string first_check_text(const Plan& plan, Start start, std::size_t images) {
  auto text = fmt::format(
      "box AP50 after epoch {} (step {}): {} means that the model learns; if it is still under "
      "0.01 after half of the epochs, check the labels with `trainer inspect`",
      plan.evaluate_every, plan.first_evaluation,
      start == Start::detector ? "above 0.05" : "anything above 0.01");
  constexpr std::size_t kFew = 50;
  if (images < kFew)
    text +=
        fmt::format("; with only {} to evaluate on, scores vary by several hundredths by chance",
                    counted(images, "image"));
  return text;
}

std::string no_flip_reason(const std::vector<std::string>& classes) {
  const auto words_of = [](const std::string& name) {
    std::vector<std::string> words(1);
    for (const char c : name) {
      const auto letter = static_cast<unsigned char>(c);
      if (std::isalnum(letter) == 0)
        words.emplace_back();
      else
        words.back() += static_cast<char>(std::tolower(letter));
    }
    return words;
  };
  std::size_t letters = 0;
  for (const auto& name : classes) {
    for (const auto& word : words_of(name))
      if (word == "left" || word == "right") return "'" + name + "' names a side";
    letters += name.size() == 1 && std::isalnum(static_cast<unsigned char>(name[0])) != 0 ? 1 : 0;
  }
  return letters > 1 ? "mirrored letters and digits are different objects" : "";
}

}  // namespace millrace::advice
