// The matches of detections and objects per image: the contents of pycocotools' evalImgs and ious.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "millrace/coco/evaluation/evaluate.h"

namespace millrace::coco {

/// The matches of cells. A cell is an image and a category with detections or objects in it. The
/// arrays of all cells are concatenated, each in C order, for A area ranges and T IoU thresholds in
/// the order of the options.
struct MatchDetails {
  struct Cell {
    std::uint32_t image = 0;     // position in the data set
    std::uint32_t category = 0;  // position among the evaluated categories; 0 if they are joined
    std::uint32_t detections = 0, objects = 0;  // D, G
    /// Offsets of the cell in `detections`, `objects` and `overlaps`.
    std::uint64_t first_detection = 0, first_object = 0, first_overlap = 0;
  };
  std::vector<Cell> cells;  // by image in the requested order, then by category

  // [D] positions among the given detections, by falling score.
  std::vector<std::uint32_t> detections;
  std::vector<double> scores;          // [D]
  std::vector<std::uint32_t> objects;  // [G] positions in Dataset::annotations, ascending
  std::vector<double> overlaps;        // [D, G]

  /// [A, G], at offset A * first_object: the order of the cell's objects with ignored ones last,
  /// and whether each object is ignored.
  std::vector<std::uint32_t> object_order;
  std::vector<std::uint8_t> object_ignored;
  /// [A, T, G] in that order, at offset A * T * first_object: the position of the last detection
  /// that took the object; -1 = none.
  std::vector<std::int32_t> object_matches;
  /// [A, T, D], at offset A * T * first_detection: the position of the object that the detection
  /// took (-1 = none), and whether the detection is ignored.
  std::vector<std::int32_t> detection_matches;
  std::vector<std::uint8_t> detection_ignored;

  /// Appends the cells of another object.
  void append(const MatchDetails& others);
};

struct Plan;               // plan.h
struct DetectionsByImage;  // matching.h

/// Matches images again to get the details. Thread-safe.
class DetailedMatcher {
 public:
  /// The arguments must outlive this object. Throws like `evaluate`.
  DetailedMatcher(const Dataset& truth, const Detections& detections, EvaluateOptions options);
  ~DetailedMatcher();

  /// Returns the details of one image. Throws Error if it is unknown, and like `evaluate`.
  MatchDetails image(std::int64_t image_id) const;
  /// Returns the details of these images, in ascending order and each once, or of all images if
  /// `image_ids` is empty. Uses the number of threads of the options.
  MatchDetails images(std::span<const std::int64_t> image_ids) const;

 private:
  MatchDetails details(std::size_t image) const;

  const Detections& detections_;
  std::unique_ptr<const Plan> plan_;
  std::unique_ptr<const DetectionsByImage> by_image_;
};

}  // namespace millrace::coco
