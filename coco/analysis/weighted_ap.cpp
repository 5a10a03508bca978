#include "millrace/coco/analysis/weighted_ap.h"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <bit>
#include <tuple>

#include "millrace/coco/evaluation/precision_envelope.h"

namespace millrace::coco {

ApPair mean(std::span<const ApPair> categories) {
  ApPair sum{0, 0};
  std::size_t count = 0;
  for (const ApPair& one : categories) {
    if (one.ap < 0) continue;
    sum.ap += one.ap;
    sum.ap50 += one.ap50;
    ++count;
  }
  if (count == 0) return {};
  return {sum.ap / static_cast<double>(count), sum.ap50 / static_cast<double>(count)};
}

WeightedAp::WeightedAp(const Plan& plan, std::span<const Matches* const> results)
    : lists_(plan.extent.categories) {
  const Dataset& truth = plan.truth;
  const auto images = static_cast<std::uint32_t>(truth.images.size());
  for (std::uint32_t from = 0; from < results.size(); ++from)
    for (std::uint32_t i = 0; i < images; ++i)
      for (const Annotation& object : truth.objects(truth.images[i])) {
        if (!plan.counts(object, /*area=*/0)) continue;
        const int k = plan.options.class_agnostic ? 0 : plan.category(object.category_id);
        auto& objects = lists_[static_cast<std::size_t>(k)].objects;
        const std::uint32_t image = from * images + i;
        if (objects.empty() || objects.back().image != image) objects.push_back({image, 0});
        ++objects.back().count;
      }
  struct Item {
    std::uint64_t score_key;  // key of descending_score_key
    std::uint32_t image;      // position in the weights
    std::uint32_t rank;
    Outcome outcome;
  };
  tbb::parallel_for(std::size_t{0}, lists_.size(), [&](std::size_t k) {
    std::vector<Item> items;
    for (std::uint32_t from = 0; from < results.size(); ++from) {
      const Matches& matches = *results[from];
      for (const std::uint32_t i : matches.of(k)) {
        const Scored& one = matches.detections[i];
        items.push_back({descending_score_key(one.score), from * images + one.image, one.rank,
                         matches.outcome(i)});
      }
    }
    std::ranges::sort(items, {}, [&](const Item& one) {
      // Equal scores are ordered by image as in pycocotools, from either result.
      return std::tuple(one.score_key, one.image % images, one.image, one.rank);
    });
    List& list = lists_[k];
    list.images.reserve(items.size());
    for (const Item& item : items) {
      const auto position = static_cast<std::uint32_t>(list.images.size());
      list.images.push_back(item.image);
      const auto [hit, ignored] = item.outcome;
      if (hit | ignored)
        list.events.push_back({position, static_cast<std::uint16_t>(hit & ~ignored), ignored});
    }
  });
}

void WeightedAp::measure(std::span<const std::uint16_t> weights,
                         std::span<ApPair> categories) const {
  for (std::size_t k = 0; k < lists_.size(); ++k) categories[k] = measure(lists_[k], weights);
}

ApPair WeightedAp::measure(const List& list, std::span<const std::uint16_t> weights) {
  std::uint64_t objects = 0;
  for (const auto& [image, count] : list.objects) objects += std::uint64_t{weights[image]} * count;
  if (objects == 0) return {};

  static const Recalls recalls;
  const RecallPoints points(objects, recalls);
  std::array<std::array<double, kRecalls>, kThresholds> precision{};
  std::vector<PrecisionEnvelope> envelopes(precision.begin(), precision.end());
  std::array<std::uint64_t, kThresholds> hits{}, ignored{};
  std::uint64_t all = 0;
  std::uint32_t at = 0;
  const auto each = [](std::uint32_t bits, auto&& body) {
    for (; bits != 0; bits &= bits - 1) body(static_cast<std::size_t>(std::countr_zero(bits)));
  };
  for (const Event& event : list.events) {
    for (; at < event.position; ++at) all += weights[list.images[at]];
    const std::uint64_t weight = weights[list.images[at++]];
    if (weight == 0) continue;
    all += weight;
    each(event.ignored, [&](std::size_t t) { ignored[t] += weight; });
    each(event.hit, [&](std::size_t t) {
      hits[t] += weight;
      envelopes[t].hit(hits[t], all - ignored[t], points);
    });
  }
  ApPair result{0, envelopes[0].average()};
  for (PrecisionEnvelope& envelope : envelopes) result.ap += envelope.average();
  result.ap /= static_cast<double>(kThresholds);
  return result;
}

}  // namespace millrace::coco
