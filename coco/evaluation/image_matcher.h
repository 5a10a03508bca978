// Matches images one after another. Not thread-safe, since it reuses its memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "millrace/coco/evaluation/matching.h"

namespace millrace::coco {

/// Memory for the counted detections of an image and their outcomes.
struct MatchRoom {
  std::span<Scored> detections;  // one per given detection
  std::span<Outcome> outcomes;   // Extent::outcomes() per detection
};

/// Finds the boxes that may overlap a given box without comparing all of them: the boxes of objects
/// sorted by their left edges.
class BoxSweep {
 public:
  void begin(Objects objects);

  /// Returns positions of objects that may overlap `box`, in any order. The objects left out share
  /// no columns with it, so their IoU is 0. Returns all objects if an edge is not finite.
  std::span<const std::uint32_t> beside(const Xywh& box) const;

 private:
  bool finite_ = true;  // true if all edges are finite
  std::vector<std::uint32_t> by_left_;
  std::vector<double> left_;      // left edges, ascending
  std::vector<double> farthest_;  // largest right edge up to each position
};

class ImageMatcher {
 public:
  /// `plan` must outlive this object.
  explicit ImageMatcher(const Plan& plan) : plan_(plan), least_(plan.least) {}
  /// Creates a matcher that stores all overlaps. Overlaps of masks and keypoints below `least` may
  /// become 0.
  ImageMatcher(const Plan& plan, double least)
      : plan_(plan), least_(least), keeps_overlaps_(true) {}

  /// Matches an image like `match_image`, but writes to the front of `out` and shrinks it to the
  /// matches.
  std::uint32_t match(const Image& image, const Detections& all, Indices given, MatchRoom& out);

  /// Calls `body(k)` for each category of the image with detections or objects, in ascending order;
  /// once with 0 if categories are joined. Returns the number of detections of unknown categories.
  template <class Body>
  std::uint32_t each_category(const Image& image, const Detections& all, Indices given,
                              const Body& body);

  // The current category:
  Indices found() const { return found_; }      // [D] by falling score, within the limit
  Objects objects() const { return objects_; }  // [G] in file order
  std::span<const double> overlaps() const { return overlaps_; }  // [D, G] if overlaps are stored

  /// Returns whether an object of the category counts in an area range.
  bool counts(std::size_t area, std::size_t object) const {
    return counts_[area * objects_.size() + object] != 0;
  }

  /// Measures overlaps, then matches greedily by falling score. A detection takes the free object
  /// with the largest overlap, the later one at equal overlaps; it takes an object that does not
  /// count only if no other fits. Crowds can be taken repeatedly. Adds the outcomes to `out`, which
  /// must be zero, and calls `take(area, word, bits, d, g)` for each object taken at the thresholds
  /// `bits`.
  template <class Take>
  void match(const Image& image, const Detections& all, std::span<Outcome> out, const Take& take);

 private:
  struct Candidate {
    std::uint64_t score_key;        // sort key of its score (descending_score_key)
    std::uint32_t category, index;  // position of the category, and among the detections
  };
  using Object = std::pair<std::uint32_t, const Annotation*>;  // category and object
  /// An object that a detection overlaps enough for at least one threshold.
  struct Near {
    double overlap;
    std::uint32_t object;
    ThresholdBits reached;  // thresholds reached in the current word
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
  std::vector<Candidate> candidates_, listed_;  // of the image, by category and falling score
  std::vector<std::uint32_t> places_;           // [K + 1]
  std::vector<std::uint32_t> best_;             // of the image, if it has a limit
  std::vector<std::uint8_t> evaluated_;  // [K] true if the category is evaluated in the image
  std::vector<Object> all_objects_;      // of the image, by category
  std::vector<std::uint32_t> found_;
  std::vector<const Annotation*> objects_;
  std::vector<double> overlaps_;
  std::vector<Near> near_;              // per detection, in the order of preference
  std::vector<std::size_t> near_ends_;  // [D]
  std::vector<std::uint8_t> counts_;    // [A, G]
  std::vector<ThresholdBits> taken_;    // [A, G]
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
        unsigned left = extent.all_bits(w);
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
            // pycocotools tests the stored id for truth, so an object with id 0 is never hit.
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
