// Matches of detections and objects, image by image: the contents of pycocotools' evalImgs and
// ious.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "millrace/coco/evaluation/evaluate.h"

namespace millrace::coco {

/// Cells are an image and a category that has detections or objects in it. Their arrays lie one
/// after the other, C order, for A ranges of areas and T thresholds of IoU in the options' order.
struct MatchDetails {
  struct Cell {
    std::uint32_t image = 0;     // position in the data set
    std::uint32_t category = 0;  // position among those evaluated, or 0 where they are joined
    std::uint32_t detections = 0, objects = 0;  // D, G
    /// Where the cell begins in `detections`, `objects` and `overlaps`.
    std::uint64_t first_detection = 0, first_object = 0, first_overlap = 0;
  };
  std::vector<Cell> cells;  // by image, in the order asked for, then by category

  std::vector<std::uint32_t> detections;  // (D) positions among those given, by falling score
  std::vector<double> scores;             // (D)
  std::vector<std::uint32_t> objects;     // (G) positions in Dataset::annotations, ascending
  std::vector<double> overlaps;           // (D, G)

  /// (A, G), from A * first_object on: places among the cell's objects, those that do not count
  /// last, and whether they do not.
  std::vector<std::uint32_t> object_order;
  std::vector<std::uint8_t> object_ignored;
  /// (A, T, G) in that order, from A * T * first_object on: the place of the last detection that
  /// took the object; -1: none.
  std::vector<std::int32_t> object_matches;
  /// (A, T, D), from A * T * first_detection on: the place of the object that was taken (-1: none),
  /// and whether the detection is neither right nor wrong.
  std::vector<std::int32_t> detection_matches;
  std::vector<std::uint8_t> detection_ignored;

  /// Appends other cells.
  void append(const MatchDetails& others);
};

struct Plan;               // plan.h
struct DetectionsByImage;  // images.h

/// Matches images again for the details. Thread-safe.
class DetailedMatcher {
 public:
  /// Borrows both. Throws as `evaluate`.
  DetailedMatcher(const Dataset& truth, const Detections& detections, EvaluateOptions options);
  ~DetailedMatcher();

  /// Details of one image. Throws Error if it is unknown, and as `evaluate`.
  MatchDetails image(std::int64_t image_id) const;
  /// Details of these images, ascending, each once; of all if no id is given. Uses as many threads
  /// as the options have.
  MatchDetails images(std::span<const std::int64_t> image_ids) const;

 private:
  MatchDetails details(std::size_t image) const;

  const Detections& detections_;
  std::unique_ptr<const Plan> plan_;
  std::unique_ptr<const DetectionsByImage> by_image_;
};

}  // namespace millrace::coco
