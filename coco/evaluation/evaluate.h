// COCO's evaluation with the same results as pycocotools, for all detections at once or
// incrementally.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/coco/data/detections.h"

namespace millrace::coco {

/// The overlap measure. `boundary` is the minimum of the IoU of the masks and of their boundaries
/// (masks/boundary.h), for crowds the mask IoU. `keypoints` is the object keypoint similarity
/// (OKS).
enum class IouType { box, mask, boundary, keypoints };

/// Returns whether overlaps are measured on masks.
constexpr bool is_of_masks(IouType iou) { return iou == IouType::mask || iou == IouType::boundary; }

/// The source of a detection's area, which decides in which area ranges a detection without a match
/// counts: its box (otherwise its mask, otherwise the box around its keypoints), its mask, the box
/// around its keypoints, or Detections::Record::area.
enum class AreaFrom { box, mask, keypoints, given };

/// Returns pycocotools' choice for a results file: the first of box, mask and keypoints that the
/// first detection has.
AreaFrom area_from(const Detections& detections);

/// numpy's linspace, bitwise equal: the ninth value of .5, .55, ... .95 is 0.8999999999999999.
template <std::size_t N>
constexpr std::array<double, N> linspace(double start, double stop) {
  std::array<double, N> values{};
  const double step = (stop - start) / static_cast<double>(N - 1);
  for (std::size_t i = 0; i + 1 < N; ++i) values[i] = start + static_cast<double>(i) * step;
  values[N - 1] = stop;
  return values;
}

/// COCO's thresholds: IoU .5, .55, ... .95 and recall 0, .01, ... 1.
inline constexpr std::size_t kThresholds = 10, kRecalls = 101;
inline constexpr auto kIouThresholds = linspace<kThresholds>(.5, .95);
inline constexpr auto kRecallThresholds = linspace<kRecalls>(0, 1);

/// A range of areas in pixels, including both ends.
struct AreaRange {
  std::string name;
  double low = 0, high = 0;

  bool has(double area) const { return !((area < low) | (area > high)); }
  friend bool operator==(const AreaRange&, const AreaRange&) = default;
};

/// Returns COCO's area ranges: "all", "small" up to 32 x 32 pixels, "medium" up to 96 x 96,
/// "large".
std::vector<AreaRange> coco_areas();

/// The per-keypoint sigmas of OKS for COCO's 17 person keypoints.
inline constexpr std::array<double, 17> kCocoSigmas = {
    .26 / 10, .25 / 10, .25 / 10,  .35 / 10,  .35 / 10, .79 / 10, .79 / 10, .72 / 10, .72 / 10,
    .62 / 10, .62 / 10, 1.07 / 10, 1.07 / 10, .87 / 10, .87 / 10, .89 / 10, .89 / 10};

struct EvaluateOptions {
  IouType iou = IouType::box;
  AreaFrom area = AreaFrom::box;
  bool class_agnostic = false;  // all categories as one (pycocotools' useCats = 0)
  /// Maximum detections per image and category that count; one or more numbers >= 1.
  std::vector<std::uint32_t> max_detections = {1, 10, 100};
  /// Compute AP and the metrics by area at the largest limit, instead of pycocotools' 100 and third
  /// limit.
  bool of_largest = false;
  /// Thresholds in any order, duplicates allowed; at least one of each, no NaN.
  std::vector<double> iou_thresholds{kIouThresholds.begin(), kIouThresholds.end()};
  std::vector<double> recall_thresholds{kRecallThresholds.begin(), kRecallThresholds.end()};
  std::vector<AreaRange> area_ranges = coco_areas();
  /// Evaluates only these categories, in this order, without duplicates. Categories missing in the
  /// data set have no objects. Empty = all categories of the data set.
  std::vector<std::int64_t> category_ids;
  /// Sigmas of OKS, one per keypoint, > 0.
  std::vector<double> sigmas{kCocoSigmas.begin(), kCocoSigmas.end()};
  /// Follows LVIS's rules: the single detection limit is per image over all categories; a category
  /// is evaluated in the images that contain it or declare it absent; unmatched detections do not
  /// count in images where the category is only partly annotated; objects and detections without an
  /// area are left out; `ignored` objects are ignored, crowds are not.
  bool federated = false;
  int threads = 0;  // 0 = all cores
};

/// Returns pycocotools' defaults; for keypoints, 20 detections and no area range "small".
EvaluateOptions usual_options(IouType iou);

/// Returns lvis-api's defaults: federated, 300 detections.
EvaluateOptions lvis_options(IouType iou);

/// Returns whether images list absent or partly annotated categories, like those of LVIS.
bool is_federated(const Dataset& truth);

/// Returns LVIS's options for boxes and masks of a federated data set, otherwise the usual ones.
/// With `most` > 0, AP and the metrics by area count up to `most` (100 or more) detections per
/// image and category (LVIS: per image); AR1, AR10 and AR100 do not change.
EvaluateOptions options_for(const Dataset& truth, IouType iou, std::uint32_t most = 0);

/// The results of pycocotools' accumulate and summarize.
struct Evaluation {
  /// The metrics; -1 if there are no objects, or no such threshold or area range.
  /// Boxes and masks: AP, AP50, AP75, APs, APm, APl, AR1, AR10, AR100, ARs, ARm, ARl.
  /// Keypoints, all at 20 detections: AP, AP50, AP75, APm, APl, AR, AR50, AR75, ARm, ARl.
  /// Federated: AP, AP50, AP75, APs, APm, APl, APr, APc, APf, and with the limit in the name, such
  /// as AR@300: AR, ARs, ARm, ARl.
  /// With limits other than 1, 10, 100, follows pycocotools: AP is at 100 detections (-1 if 100 is
  /// not a limit), the three AR are at the first three limits, the rest is at the third. With fewer
  /// than three limits, for which pycocotools fails, the last limit replaces the missing ones and
  /// is used for AP.
  std::vector<double> stats;
  std::vector<std::string> stat_names;  // name of each
  IouType iou = IouType::box;           // from the options, like `federated`
  bool federated = false;
  std::vector<std::uint32_t> max_detections;  // the M limits, ascending
  bool of_largest = false;                    // from the options
  /// The T, R and A of the tables, from the options.
  std::vector<double> iou_thresholds, recall_thresholds;
  std::vector<AreaRange> area_ranges;
  /// [T, R, K, A, M], [T, K, A, M] and [T, R, K, A, M] in C order, like pycocotools' eval dict. By
  /// default T is 10, R 101, A 4 and M 3.
  std::vector<double> precision, recall, scores;
  std::vector<std::int64_t> category_ids;  // ids of the K categories
  std::string category_frequencies;        // [K] Category::frequency, 0 = unknown
  /// [K] AP over all thresholds, for the first area range and the largest limit; -1 = no objects.
  std::vector<double> category_ap;
  // Number of detections left out: of unknown images, and of categories that are neither in the
  // data set nor requested.
  std::int64_t unknown_images = 0, unknown_categories = 0;
};

/// The names of the 12 `stats` of boxes and masks: "AP", "AP50", ...
extern const std::array<const char*, 12> kStatNames;
/// Returns the names of the `stats` with `lvis_options`: "AP", ... "APf", "AR@300", ...; `most` as
/// in `options_for`.
std::vector<std::string> lvis_stat_names(std::uint32_t most = 0);

/// Evaluates detections, in any order, on a data set. Detections of unknown images or categories
/// are left out and counted. `image_ids` restricts the evaluation; empty = all images. Throws Error
/// naming a detection that lacks the source of its area, or a detection or object whose number of
/// keypoints differs from the number of sigmas. Throws std::invalid_argument naming an invalid
/// option. Results are bitwise equal for any number of threads.
Evaluation evaluate(const Dataset& truth, const Detections& detections,
                    const EvaluateOptions& options, std::span<const std::int64_t> image_ids = {});

/// Returns the table that pycocotools or lvis-api prints.
std::string table(const Evaluation& evaluation, IouType iou);

struct ImageMatches;  // matching.h
struct Matches;       // matching.h
struct Plan;          // plan.h

/// Evaluates detections incrementally and stores only their matches. The result is bitwise equal to
/// `evaluate` of all detections at once, for any order of images, any number of threads, and any
/// distribution over evaluators that are merged. Thread-safe.
class Evaluator {
 public:
  /// The images to evaluate: those added, or all, of which those not added have no detections.
  enum class Scope { added, all };

  /// Throws std::invalid_argument like `evaluate`.
  Evaluator(std::shared_ptr<const Dataset> truth, EvaluateOptions options);
  ~Evaluator();
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  /// Adds all detections of an image, in any order, and matches them on the calling thread.
  /// Detections of unknown categories are left out and counted. Throws Error naming the image if it
  /// is unknown or already added, or if a detection belongs to another image, and like `evaluate`
  /// and Detections::add.
  void add(std::int64_t image_id, std::span<const Detection> found);

  /// Returns the number of images added or merged.
  std::size_t images() const;

  /// Returns the state as bytes for `merge` on machines of the same byte order. Equal states give
  /// equal bytes.
  std::string partial() const;

  /// Adds the state of another evaluator of the same data set and options. Throws Error and changes
  /// nothing if these differ, if the bytes are invalid, or if an image is already present.
  void merge(std::string_view partial);

  Evaluation result(Scope scope = Scope::added) const;

  /// Returns the matches of the added images, for metrics that an Evaluation lacks. Sets `images`
  /// to the positions of these images in the data set, ascending.
  Matches matches(std::vector<std::uint32_t>& images) const;
  const Plan& plan() const { return *plan_; }

 private:
  struct State {
    bool added = false;
    std::uint32_t unknown_categories = 0;
  };

  std::uint64_t setting() const;  // digest of data set and options

  std::shared_ptr<const Dataset> truth_;
  std::unique_ptr<const Plan> plan_;
  mutable std::mutex mutex_;  // guards the members below, which have one entry per image
  std::vector<State> state_;
  std::vector<ImageMatches> matches_;
};

}  // namespace millrace::coco
