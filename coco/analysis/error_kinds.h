// What kind of error costs how much AP: the error types of TIDE (Bolya, Foley, Hays, Hoffman:
// "TIDE: A General Toolbox for Identifying Object Detection Errors", ECCV 2020, arXiv 2008.08115).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "millrace/coco/analysis/image_pairs.h"

namespace millrace::coco {

/// What is wrong at IoU .5. A detection's is location if that fits, else the first of class,
/// duplicate and background that fits, else both.
enum class ErrorKind : std::uint8_t {
  category,    // IoU of at least .5 with an object of another class
  location,    // IoU of .1 to .5 with the object of its class that it overlaps most
  both,        // wrong class and location: near an object of another class
  duplicate,   // IoU of at least .5 with an object of its class that a better score has found
  background,  // IoU of at most .1 with every object
  missed,      // an object that is not found, and that no mended class or location would find
};
inline constexpr std::size_t kErrorKinds = 6;
inline constexpr std::array<std::string_view, kErrorKinds> kErrorNames = {
    "class", "location", "both", "duplicate", "background", "missed"};

/// Errors of one category, or of all.
struct ErrorCosts {
  double ap50 = -1;  // as the evaluator has it; -1 and no costs where there is nothing to find
  /// AP50 gained if one kind alone is mended: a wrong class or location becomes a hit (the best
  /// score of those that compete), other wrong detections go, and a missed object no longer counts.
  std::array<double, kErrorKinds> cost{};
  /// The same if no detection is wrong, and if every object is found.
  double false_positives = 0, false_negatives = 0;
  std::array<std::int64_t, kErrorKinds> count{};
};

/// The kind that costs most; nullopt if none costs anything.
std::optional<ErrorKind> dearest(const ErrorCosts& errors);

/// Detections that count neither as right nor as wrong are not errors.
struct ErrorReport {
  ErrorCosts all;  // costs: the mean over the categories that have something to find, at least 0
  std::vector<ErrorCosts> categories;  // (K)
};

/// What became of each detection and each object at IoU .5, detections of all scores counted.
struct Verdicts {
  static constexpr std::uint8_t kHit = kErrorKinds, kIgnored = kErrorKinds + 1;
  /// As the Detections given: an ErrorKind, kHit, or kIgnored for what does not count.
  std::vector<std::uint8_t> detections;
  /// As Dataset::annotations: the score of the detection that finds it; NaN: none does; -1: it does
  /// not count, as crowds.
  std::vector<double> found_at;
};

/// Collects errors image by image, from any thread.
class ErrorKinds {
 public:
  /// Borrows the matches.
  ErrorKinds(const Dataset& truth, const Matches& matches);

  void add(const ImagePairs& pairs);
  /// After all images.
  ErrorReport report() const;
  /// The verdicts of all images, for `detections` given.
  Verdicts verdicts(std::size_t detections) const;

 private:
  /// A detection's error, or one of these.
  enum : std::uint8_t { kHit = kErrorKinds, kIgnored };
  static constexpr std::uint32_t kNothing = ~std::uint32_t{0};
  struct Verdict {
    std::uint8_t what = kIgnored;
    std::uint32_t mended = kNothing;  // the category that it is a hit of once its error is mended
  };
  enum class Fate : std::uint8_t { does_not_count, found, mendable, missed };
  struct Object {
    std::uint32_t category = 0;
    Fate fate = Fate::does_not_count;
    double found_at = 0;  // if it is found
  };

  Verdict verdict(const ImagePairs& pairs, std::size_t f, const std::vector<bool>& taken,
                  std::vector<bool>& claimed) const;

  const Matches& matches_;
  std::vector<Verdict> verdicts_;  // one per Matches::detections
  std::vector<Object> objects_;    // one per Dataset::annotations
};

}  // namespace millrace::coco
