// The AP lost to each kind of error, with the error types of TIDE (Bolya, Foley, Hays, Hoffman:
// "TIDE: A General Toolbox for Identifying Object Detection Errors", ECCV 2020, arXiv 2008.08115).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "millrace/coco/analysis/image_pairs.h"

namespace millrace::coco {

/// The kind of an error at IoU .5. A wrong detection is `location` if its condition holds,
/// otherwise the first of `category`, `duplicate` and `background` whose condition holds, otherwise
/// `both`.
enum class ErrorKind : std::uint8_t {
  category,    // IoU of at least .5 with an object of another category
  location,    // IoU of .1 to .5 with the object of its category that it overlaps most
  both,        // wrong category and location: near an object of another category
  duplicate,   // IoU of at least .5 with an object of its category that a higher score has taken
  background,  // IoU of at most .1 with every object
  missed,      // an object not found, and not found either when categories or locations are fixed
};
inline constexpr std::size_t kErrorKinds = 6;
inline constexpr std::array<std::string_view, kErrorKinds> kErrorNames = {
    "class", "location", "both", "duplicate", "background", "missed"};

/// The errors of one category, or of all.
struct ErrorCosts {
  double ap50 = -1;  // as computed by the evaluator; -1, and costs 0, if there are no objects
  /// AP50 gained by fixing only this kind of error: a wrong category or location becomes a hit (the
  /// highest score if several compete for an object), other wrong detections are removed, and a
  /// missed object no longer counts.
  std::array<double, kErrorKinds> cost{};
  /// AP50 gained if every wrong detection is removed, and if every missed object is found.
  double false_positives = 0, false_negatives = 0;
  std::array<std::int64_t, kErrorKinds> count{};
};

/// Returns the kind with the highest cost; nullopt if all costs are 0.
std::optional<ErrorKind> costliest_kind(const ErrorCosts& errors);

/// The errors of all categories. Ignored detections are not errors.
struct ErrorReport {
  ErrorCosts all;  // costs are means over the categories with objects, at least 0
  std::vector<ErrorCosts> categories;  // [K]
};

/// The outcome of each detection and each object at IoU .5, at any score.
struct Verdicts {
  static constexpr std::uint8_t kHit = kErrorKinds, kIgnored = kErrorKinds + 1;
  /// Indexed like the evaluated Detections: an ErrorKind, kHit or kIgnored.
  std::vector<std::uint8_t> detections;
  /// Indexed like Dataset::annotations: the score of the detection that finds the object; NaN if
  /// none does, -1 if the object does not count, such as a crowd.
  std::vector<double> found_at;
};

/// Collects errors image by image. `add` is thread-safe.
class ErrorKinds {
 public:
  /// `matches` must outlive this object.
  ErrorKinds(const Dataset& truth, const Matches& matches);

  void add(const ImagePairs& pairs);
  /// Returns the errors of all images; call after all images are added.
  ErrorReport report() const;
  /// Returns the verdicts of all images. `detections` is the number of evaluated detections.
  Verdicts verdicts(std::size_t detections) const;

 private:
  static constexpr std::uint32_t kNothing = ~std::uint32_t{0};
  struct Verdict {
    std::uint8_t what = Verdicts::kIgnored;  // as in Verdicts::detections
    std::uint32_t mended = kNothing;  // category in which it becomes a hit when its error is fixed
  };
  enum class Fate : std::uint8_t { does_not_count, found, mendable, missed };
  struct Object {
    std::uint32_t category = 0;
    Fate fate = Fate::does_not_count;
    double found_at = 0;  // score, if found
  };

  Verdict verdict(const ImagePairs& pairs, std::size_t f, const std::vector<bool>& taken,
                  std::vector<bool>& claimed) const;

  const Matches& matches_;
  std::vector<Verdict> verdicts_;  // one per Matches::detections
  std::vector<Object> objects_;    // one per Dataset::annotations
};

}  // namespace millrace::coco
