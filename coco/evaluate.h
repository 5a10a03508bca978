// The COCO evaluator: the twelve figures for boxes and masks, equal to pycocotools 2.0.11.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "coco/annotations.h"

namespace millrace::coco {

enum class IouType { box, mask };

struct EvaluateOptions {
  IouType iou = IouType::box;
  bool class_agnostic = false;  // all categories as one (pycocotools' useCats = 0)
  int threads = 0;              // 0: all cores
};

/// What pycocotools' accumulate and summarize leave.
struct Evaluation {
  /// AP, AP50, AP75, APs, APm, APl, AR1, AR10, AR100, ARs, ARm, ARl; -1 where nothing can be said.
  std::array<double, 12> stats;
  /// (T=10, R=101, K, A=4, M=3), (T, K, A, M), (T, R, K, A, M), C order, as pycocotools' eval dict.
  std::vector<double> precision, recall, scores;
  std::vector<std::int64_t> category_ids;  // the K categories
  std::vector<double>
      category_ap;  // (K) AP over all thresholds, all areas, 100 detections; -1: none
};

/// The names of `stats`: "AP", "AP50", ...
extern const std::array<const char*, 12> kStatNames;

/// Scores detections against a data set. Detections may come in any order; those of images or categories that
/// the data set lacks are left out, as pycocotools does with its parameters. `image_ids` restricts the
/// evaluation; empty: every image of the data set.
Evaluation evaluate(const Dataset& truth, std::span<const Detection> detections,
                    const EvaluateOptions& options, std::span<const std::int64_t> image_ids = {});

/// The table that pycocotools prints.
std::string table(const Evaluation& evaluation, IouType iou);

}  // namespace millrace::coco
