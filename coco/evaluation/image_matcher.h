// Matching of one image after the other. Not for several threads: it reuses its memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "millrace/coco/evaluation/box_sweep.h"
#include "millrace/coco/evaluation/matching.h"

namespace millrace::coco {

/// Room for the detections of an image that count, and for their outcomes.
struct MatchRoom {
  std::span<Scored> detections;  // as many as are given
  std::span<Outcome> outcomes;   // Extent::outcomes() of each
};

class ImageMatcher {
 public:
  /// Borrows the plan.
  explicit ImageMatcher(const Plan& plan) : plan_(plan), least_(plan.least) {}
  /// One that keeps all overlaps. Those of masks and keypoints below `least` may become 0.
  ImageMatcher(const Plan& plan, double least)
      : plan_(plan), least_(least), keeps_overlaps_(true) {}

  /// As `match_image`, but fills the front of `out`, which then ends where the matches do.
  std::uint32_t match(const Image& image, const Detections& all, Indices given, MatchRoom& out);

  /// Calls `body(k)` for each category of the image, ascending, that has detections or objects;
  /// once with 0 where categories are joined. Returns the detections of unknown categories.
  template <class Body>
  std::uint32_t each_category(const Image& image, const Detections& all, Indices given,
                              const Body& body);

  // Of the category:
  Indices found() const { return found_; }      // (D) by falling score, those within the limit
  Objects objects() const { return objects_; }  // (G) in the order of the file
  std::span<const double> overlaps() const { return overlaps_; }  // (D, G) if they are kept

  /// Whether an object of the category counts in a range of areas.
  bool counts(std::size_t area, std::size_t object) const {
    return counts_[area * objects_.size() + object] != 0;
  }

  /// Measures overlaps, then matches greedily, best score first: a detection takes the free object
  /// that it overlaps most, the later one of equal overlaps; one that does not count only where no
  /// other fits. Crowds can be taken again. Adds to `out`, which begins as zeros, and calls
  /// `take(area, word, bits, d, g)` for each object that is taken at the thresholds `bits`.
  template <class Take>
  void match(const Image& image, const Detections& all, std::span<Outcome> out, const Take& take);

 private:
  struct Candidate {
    std::uint64_t fall;             // key of its score (score_fall)
    std::uint32_t category, index;  // position, among the detections
  };
  using Object = std::pair<std::uint32_t, const Annotation*>;  // category first
  /// An object that a detection overlaps enough for some threshold.
  struct Near {
    double overlap;
    std::uint32_t object;
    ThresholdBits reached;  // of the word that is being matched
  };

  void list(const Image& image);
  std::uint32_t list(const Image& image, const Detections& all, Indices given);
  Indices best_of(const Detections& all, Indices given);
  void find_evaluated(const Image& image);
  void measure(const Image& image, const Detections& all);
  void measure_pairs(const Image& image, const Detections& all);
  void sweep(const Detections& all);
  void add_near(std::size_t found);
  void end_near(std::size_t begin);
  void ignore_outside(const Image& image, const Detections& all, std::span<Outcome> out) const;

  const Plan& plan_;
  double least_;
  bool keeps_overlaps_ = false;
  BoxSweep sweep_;
  std::vector<Candidate> candidates_, listed_;  // the image's, by category and falling score
  std::vector<std::uint32_t> places_;           // (K + 1)
  std::vector<std::uint32_t> best_;             // the image's, where it has a limit
  std::vector<std::uint8_t> evaluated_;         // (K) whether the image evaluates a category
  std::vector<Object> all_objects_;             // the image's, by category
  std::vector<std::uint32_t> found_;
  std::vector<const Annotation*> objects_;
  std::vector<double> overlaps_;
  std::vector<Near> near_;              // of each detection, those to be taken first in front
  std::vector<std::size_t> near_ends_;  // (D)
  std::vector<std::uint8_t> counts_;    // (A, G)
  std::vector<ThresholdBits> taken_;    // (A, G)
};

template <class Body>
std::uint32_t ImageMatcher::each_category(const Image& image, const Detections& all, Indices given,
                                          const Body& body) {
  list(image);
  const std::uint32_t unknown = list(image, all, given);
  const bool joined = plan_.options.class_agnostic;
  const std::size_t limit = plan_.options.max_detections.back();
  auto one = candidates_.begin();
  auto object = all_objects_.begin();
  while (one != candidates_.end() || object != all_objects_.end()) {
    const std::uint32_t k =
        joined ? 0
               : std::min(one != candidates_.end() ? one->category : UINT32_MAX,
                          object != all_objects_.end() ? object->first : UINT32_MAX);
    found_.clear();
    for (; one != candidates_.end() && (joined || one->category == k); ++one)
      if (found_.size() < limit) found_.push_back(one->index);
    objects_.clear();
    for (; object != all_objects_.end() && (joined || object->first == k); ++object)
      objects_.push_back(object->second);
    body(k);
  }
  return unknown;
}

template <class Take>
void ImageMatcher::match(const Image& image, const Detections& all, std::span<Outcome> out,
                         const Take& take) {
  measure(image, all);
  const Extent& extent = plan_.extent;
  const std::size_t objects = objects_.size(), words = extent.words();
  for (std::size_t w = 0; w < words && !near_.empty(); ++w) {
    for (Near& near : near_) near.reached = plan_.reached(near.overlap, w);
    taken_.assign(extent.areas * objects, 0);
    for (std::size_t d = 0, begin = 0; d < found_.size(); begin = near_ends_[d++]) {
      const auto fitting = std::span(near_).subspan(begin, near_ends_[d] - begin);
      for (std::size_t a = 0; a < extent.areas && !fitting.empty(); ++a) {
        Outcome& outcome = out[d * extent.outcomes() + a * words + w];
        unsigned left = extent.every(w);
        for (const bool counting : {true, false})
          for (const Near& near : fitting) {
            const std::size_t g = a * objects + near.object;
            if ((counts_[g] != 0) != counting) continue;
            const Annotation& object = *objects_[near.object];
            unsigned bits = left & near.reached;
            if (!plan_.crowd(object)) bits &= ~unsigned{taken_[g]};
            if (bits == 0) continue;
            left &= ~bits;
            const auto now = static_cast<ThresholdBits>(bits);
            taken_[g] |= now;
            // pycocotools stores the id and tests it for truth: an object with id 0 is never hit.
            if (object.id != 0) outcome.hit |= now;
            if (!counting) outcome.ignored |= now;
            take(a, w, now, d, near.object);
          }
      }
    }
  }
  ignore_outside(image, all, out);
}

}  // namespace millrace::coco
