#include "millrace/coco/evaluation/details.h"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/coco/evaluation/image_matcher.h"

namespace millrace::coco {
namespace {

/// Writes the arrays of a cell.
class CellWriter {
 public:
  CellWriter(const Plan& plan, const Detections& all, std::size_t image, MatchDetails& out)
      : plan_(plan), all_(all), image_(image), out_(out) {}

  void add(std::uint32_t category, ImageMatcher& matcher) {
    const auto found = matcher.found();
    const auto objects = matcher.objects();
    const std::size_t areas = plan_.extent.areas, levels = areas * plan_.extent.thresholds;
    cell_ = {static_cast<std::uint32_t>(image_),
             category,
             static_cast<std::uint32_t>(found.size()),
             static_cast<std::uint32_t>(objects.size()),
             out_.detections.size(),
             out_.objects.size(),
             out_.overlaps.size()};
    out_.detections.insert(out_.detections.end(), found.begin(), found.end());
    for (const std::uint32_t index : found) out_.scores.push_back(all_[index].score);
    for (const Annotation* object : objects)
      out_.objects.push_back(static_cast<std::uint32_t>(object - plan_.truth.annotations.data()));
    out_.detection_matches.resize(out_.detections.size() * levels, -1);
    out_.object_matches.resize(out_.objects.size() * levels, -1);
    order_objects(objects);

    outcomes_.assign(found.size() * plan_.extent.outcomes(), {});
    matcher.match(plan_.truth.images[image_], all_, outcomes_,
                  [&](std::size_t a, std::size_t w, ThresholdBits bits, std::size_t d,
                      std::uint32_t g) { take(a, w, bits, d, g); });
    const auto overlaps = matcher.overlaps();
    out_.overlaps.insert(out_.overlaps.end(), overlaps.begin(), overlaps.end());
    tell_ignored();
    out_.cells.push_back(cell_);
  }

 private:
  /// For each area range, writes the objects that count, then the others.
  void order_objects(Objects objects) {
    places_.resize(plan_.extent.areas * objects.size());
    for (std::size_t a = 0, at = 0; a < plan_.extent.areas; ++a) {
      const std::size_t begin = at;
      for (const bool counting : {true, false})
        for (std::uint32_t g = 0; g < objects.size(); ++g) {
          if (plan_.counts(*objects[g], a) != counting) continue;
          places_[a * objects.size() + g] = static_cast<std::uint32_t>(at++ - begin);
          out_.object_order.push_back(g);
          out_.object_ignored.push_back(!counting);
        }
    }
  }

  void take(std::size_t a, std::size_t w, unsigned bits, std::size_t d, std::uint32_t g) {
    const std::size_t thresholds = plan_.extent.thresholds, areas = plan_.extent.areas;
    for (; bits != 0; bits &= bits - 1) {
      const std::size_t t = w * kWordBits + static_cast<std::size_t>(std::countr_zero(bits));
      const std::size_t row = a * thresholds + t;
      const std::size_t place = places_[a * cell_.objects + g];
      out_.detection_matches[areas * thresholds * cell_.first_detection + row * cell_.detections +
                             d] = static_cast<std::int32_t>(g);
      out_.object_matches[areas * thresholds * cell_.first_object + row * cell_.objects + place] =
          static_cast<std::int32_t>(d);
    }
  }

  void tell_ignored() {
    const Extent& extent = plan_.extent;
    for (std::size_t a = 0; a < extent.areas; ++a)
      for (std::size_t t = 0; t < extent.thresholds; ++t)
        for (std::size_t d = 0; d < cell_.detections; ++d) {
          const std::size_t word = a * extent.words() + t / kWordBits;
          const unsigned ignored = outcomes_[d * extent.outcomes() + word].ignored;
          out_.detection_ignored.push_back(ignored >> (t % kWordBits) & 1);
        }
  }

  const Plan& plan_;
  const Detections& all_;
  std::size_t image_;
  MatchDetails& out_;
  MatchDetails::Cell cell_;
  std::vector<std::uint32_t> places_;  // [A, G] position of each object in object_order
  std::vector<Outcome> outcomes_;
};

}  // namespace

void MatchDetails::append(const MatchDetails& others) {
  for (Cell cell : others.cells) {
    cell.first_detection += detections.size();
    cell.first_object += objects.size();
    cell.first_overlap += overlaps.size();
    cells.push_back(cell);
  }
  const auto append = [](auto& to, const auto& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  append(detections, others.detections);
  append(scores, others.scores);
  append(objects, others.objects);
  append(overlaps, others.overlaps);
  append(object_order, others.object_order);
  append(object_ignored, others.object_ignored);
  append(object_matches, others.object_matches);
  append(detection_matches, others.detection_matches);
  append(detection_ignored, others.detection_ignored);
}

DetailedMatcher::DetailedMatcher(const Dataset& truth, const Detections& detections,
                                 EvaluateOptions options)
    : detections_(detections),
      plan_(std::make_unique<const Plan>(truth, std::move(options))),
      by_image_(std::make_unique<const DetectionsByImage>(truth, detections)) {}

DetailedMatcher::~DetailedMatcher() = default;

MatchDetails DetailedMatcher::details(std::size_t image) const {
  MatchDetails details;
  // Computes every overlap exactly, however small.
  ImageMatcher matcher(*plan_, -std::numeric_limits<double>::infinity());
  CellWriter writer(*plan_, detections_, image, details);
  matcher.each_category(plan_->truth.images[image], detections_, by_image_->of(image),
                        [&](std::uint32_t k) { writer.add(k, matcher); });
  return details;
}

MatchDetails DetailedMatcher::image(std::int64_t image_id) const {
  const Image* image = plan_->truth.find_image(image_id);
  if (!image)
    throw Error(fmt::format("evaluation: image {}: not in {}", image_id, plan_->truth.source));
  return details(static_cast<std::size_t>(image - plan_->truth.images.data()));
}

MatchDetails DetailedMatcher::images(std::span<const std::int64_t> image_ids) const {
  const auto chosen = chosen_images(plan_->truth, image_ids);
  std::vector<MatchDetails> parts(chosen.size());
  in_arena(plan_->options.threads, [&] {
    tbb::parallel_for(std::size_t{0}, chosen.size(), [&](std::size_t i) {
      if (chosen[i]) parts[i] = details(i);
    });
  });
  MatchDetails all;
  for (const MatchDetails& part : parts) all.append(part);
  return all;
}

}  // namespace millrace::coco
