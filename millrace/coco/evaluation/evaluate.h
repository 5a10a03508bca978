// The COCO evaluator: the twelve figures for boxes and masks, equal to pycocotools 2.0.11.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "millrace/coco/data/detections.h"

namespace millrace::coco {

enum class IouType { box, mask };

/// What the area of a detection is taken from, which decides in which ranges of areas one that hits
/// no object counts: its box, or its mask where it has no box; or its mask.
enum class AreaFrom { box, mask };

/// pycocotools' rule for a results file: boxes where the first detection has one.
AreaFrom area_from(const Detections& detections);

struct EvaluateOptions {
  IouType iou = IouType::box;
  AreaFrom area = AreaFrom::box;
  bool class_agnostic = false;  // all categories as one (pycocotools' useCats = 0)
  /// At most so many detections of an image and category count: one or more numbers from 1 on,
  /// taken in ascending order.
  std::vector<std::uint32_t> max_detections = {1, 10, 100};
  int threads = 0;  // 0: all cores
};

/// What pycocotools' accumulate and summarize leave.
struct Evaluation {
  /// AP, AP50, AP75, APs, APm, APl, AR1, AR10, AR100, ARs, ARm, ARl; -1 where nothing can be said.
  /// With other limits than 1, 10, 100 as pycocotools: AP stands for 100 detections (-1 where that
  /// is no limit), the three AR for the first three limits, the rest for the third. It fails with
  /// fewer than three; here the last one then stands for those that are not there, and for AP.
  std::array<double, 12> stats{};
  std::vector<std::uint32_t> max_detections;  // the M limits, ascending
  /// (T=10, R=101, K, A=4, M), (T, K, A, M), (T, R, K, A, M), C order, as pycocotools' eval dict.
  std::vector<double> precision, recall, scores;
  std::vector<std::int64_t> category_ids;  // the K categories
  /// (K) AP over all thresholds, all areas, at the largest limit; -1: none.
  std::vector<double> category_ap;
  std::int64_t unknown_images = 0;  // detections of images that the data set lacks: left out
  // Detections of its images and of categories that it lacks: left out
  std::int64_t unknown_categories = 0;
};

/// The names of `stats` with the limits 1, 10 and 100: "AP", "AP50", ...
extern const std::array<const char*, 12> kStatNames;

/// Scores detections against a data set. They may come in any order; those of images or categories
/// that the data set lacks are left out and counted. `image_ids` restricts the evaluation; empty:
/// every image of the data set. Throws Error naming a detection without a mask whose area is taken
/// from masks, std::invalid_argument for limits below 1 or none. The same bits for any number of
/// threads.
Evaluation evaluate(const Dataset& truth, const Detections& detections,
                    const EvaluateOptions& options, std::span<const std::int64_t> image_ids = {});

/// The table that pycocotools prints.
std::string table(const Evaluation& evaluation, IouType iou);

}  // namespace millrace::coco
