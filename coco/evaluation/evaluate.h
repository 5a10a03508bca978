// COCO's evaluation: the same figures as pycocotools, of all detections at once or as they come.
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

/// What overlaps are of. Boundary: the less of a mask's and of its boundary's (masks/boundary.h); a
/// crowd's is the mask's. That of keypoints is their similarity (OKS).
enum class IouType { box, mask, boundary, keypoints };

/// Whether overlaps are measured on masks.
constexpr bool is_of_masks(IouType iou) { return iou == IouType::mask || iou == IouType::boundary; }

/// What the area of a detection is taken from, which decides in which ranges of areas one that hits
/// no object counts: its box (without one its mask, without both the box around its keypoints), its
/// mask, the box around its keypoints, or Detections::Record::area.
enum class AreaFrom { box, mask, keypoints, given };

/// pycocotools' rule for a results file: what the first detection has first of box, mask,
/// keypoints.
AreaFrom area_from(const Detections& detections);

/// numpy's linspace, to the bit: the ninth of .5, .55, ... .95 is 0.8999999999999999.
template <std::size_t N>
constexpr std::array<double, N> linspace(double start, double stop) {
  std::array<double, N> values{};
  const double step = (stop - start) / static_cast<double>(N - 1);
  for (std::size_t i = 0; i + 1 < N; ++i) values[i] = start + static_cast<double>(i) * step;
  values[N - 1] = stop;
  return values;
}

/// COCO's thresholds: of IoU .5, .55, ... .95, of recall 0, .01, ... 1.
inline constexpr std::size_t kThresholds = 10, kRecalls = 101;
inline constexpr auto kIouThresholds = linspace<kThresholds>(.5, .95);
inline constexpr auto kRecallThresholds = linspace<kRecalls>(0, 1);

/// A range of areas in pixels. Both ends belong to it.
struct AreaRange {
  std::string name;
  double low = 0, high = 0;

  bool has(double area) const { return !((area < low) | (area > high)); }
  friend bool operator==(const AreaRange&, const AreaRange&) = default;
};

/// COCO's: "all", "small" to 32 x 32 pixels, "medium" to 96 x 96, "large".
std::vector<AreaRange> coco_areas();

/// The standard deviations of COCO's 17 keypoints of persons, which OKS is measured with.
inline constexpr std::array<double, 17> kCocoSigmas = {
    .26 / 10, .25 / 10, .25 / 10,  .35 / 10,  .35 / 10, .79 / 10, .79 / 10, .72 / 10, .72 / 10,
    .62 / 10, .62 / 10, 1.07 / 10, 1.07 / 10, .87 / 10, .87 / 10, .89 / 10, .89 / 10};

struct EvaluateOptions {
  IouType iou = IouType::box;
  AreaFrom area = AreaFrom::box;
  bool class_agnostic = false;  // all categories as one (pycocotools' useCats = 0)
  /// Maximum detections of an image and category that count: one or more numbers from 1 on.
  std::vector<std::uint32_t> max_detections = {1, 10, 100};
  /// AP and the figures by area are of the largest limit, instead of pycocotools' 100 and third.
  bool of_largest = false;
  /// In any order, also several times the same; one or more of each, no NaN.
  std::vector<double> iou_thresholds{kIouThresholds.begin(), kIouThresholds.end()};
  std::vector<double> recall_thresholds{kRecallThresholds.begin(), kRecallThresholds.end()};
  std::vector<AreaRange> area_ranges = coco_areas();
  /// Only these, in this order, each once; those that the data set lacks have nothing to find.
  /// Empty: all of the data set.
  std::vector<std::int64_t> category_ids;
  /// Of keypoints: one for each, above 0.
  std::vector<double> sigmas{kCocoSigmas.begin(), kCocoSigmas.end()};
  /// As LVIS: the one limit of detections is an image's, over all categories; a category is
  /// evaluated in the images that have it or say that they do not; misses of it do not count where
  /// it is marked in part; objects and detections without an area are left out; `ignored` objects
  /// and no crowds are set aside.
  bool federated = false;
  int threads = 0;  // 0: all cores
};

/// What pycocotools begins with: for keypoints 20 detections, and areas without "small".
EvaluateOptions usual_options(IouType iou);

/// What lvis-api begins with: federated, 300 detections.
EvaluateOptions lvis_options(IouType iou);

/// Whether images name categories that they lack, or of which they mark only a part, as LVIS's do.
bool is_federated(const Dataset& truth);

/// LVIS's options for boxes and masks of a federated data set, else the usual ones. With `most`
/// other than 0, AP and the figures by area count up to `most` detections, 100 or more, of an image
/// and category (LVIS: of an image); AR1, AR10 and AR100 stay as they are.
EvaluateOptions options_for(const Dataset& truth, IouType iou, std::uint32_t most = 0);

/// The results of pycocotools' accumulate and summarize.
struct Evaluation {
  /// AP, AP50, AP75, APs, APm, APl, AR1, AR10, AR100, ARs, ARm, ARl. Of keypoints AP, AP50, AP75,
  /// APm, APl, AR, AR50, AR75, ARm, ARl, all for 20 detections. Federated AP, AP50, AP75, APs, APm,
  /// APl, APr, APc, APf, and with the limit, such as AR@300, AR, ARs, ARm, ARl. -1 if there is
  /// nothing to find, or no such threshold or name of a range of areas. With limits other than 1,
  /// 10, 100 as pycocotools: AP is for 100 detections (-1 if that is no limit), the three AR for
  /// the first three limits, the rest for the third. With fewer than three, where pycocotools
  /// fails, the last is used for the missing ones and for AP.
  std::vector<double> stats;
  std::vector<std::string> stat_names;  // of each
  IouType iou = IouType::box;           // as in the options, like the next
  bool federated = false;
  std::vector<std::uint32_t> max_detections;  // the M limits, ascending
  bool of_largest = false;                    // as in the options
  /// The T, R and A of the tables, as in the options.
  std::vector<double> iou_thresholds, recall_thresholds;
  std::vector<AreaRange> area_ranges;
  /// (T, R, K, A, M), (T, K, A, M), (T, R, K, A, M), C order, as pycocotools' eval dict; by default
  /// T is 10, R 101, A 4 and M 3.
  std::vector<double> precision, recall, scores;
  std::vector<std::int64_t> category_ids;  // the K categories
  std::string category_frequencies;        // (K) Category::frequency, 0 where it is not known
  /// (K) AP over all thresholds, the first range of areas, at the largest limit; -1: none.
  std::vector<double> category_ap;
  // Detections left out: of unknown images, and of known ones but categories that are neither in
  // the data set nor asked for
  std::int64_t unknown_images = 0, unknown_categories = 0;
};

/// The names of the 12 `stats` of boxes and masks: "AP", "AP50", ...
extern const std::array<const char*, 12> kStatNames;
/// Those of `lvis_options`: "AP", ... "APf", "AR@300", ...; `most` as for `options_for`.
std::vector<std::string> lvis_stat_names(std::uint32_t most = 0);

/// Scores detections, in any order, against a data set; those of unknown images or categories are
/// left out and counted. `image_ids` restricts the evaluation; empty: all images. Throws Error
/// naming a detection that lacks what its area is taken from, or that has, as an object, another
/// number of keypoints than there are sigmas, std::invalid_argument naming an
/// option that is not as EvaluateOptions says. The same bits for any number of threads.
Evaluation evaluate(const Dataset& truth, const Detections& detections,
                    const EvaluateOptions& options, std::span<const std::int64_t> image_ids = {});

/// The table that pycocotools or lvis-api prints.
std::string table(const Evaluation& evaluation, IouType iou);

struct ImageMatches;  // matching.h
struct Matches;       // matching.h
struct Plan;          // plan.h

/// Scores detections as they come and keeps only what they hit. The result has the same bits as
/// `evaluate` of all of them at once, for any order of images, number of threads and split over
/// evaluators that are merged. Any thread may call anything.
class Evaluator {
 public:
  /// The images that are scored: those added, or all, as if nothing were found in the others.
  enum class Scope { added, all };

  /// Throws std::invalid_argument as `evaluate`.
  Evaluator(std::shared_ptr<const Dataset> truth, EvaluateOptions options);
  ~Evaluator();
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  /// Takes all detections of an image, in any order, and matches them in the calling thread. Those
  /// of unknown categories are left out and counted. Throws Error naming the image if it is unknown
  /// or was added before, or if a detection names another image, and as `evaluate` and
  /// Detections::add.
  void add(std::int64_t image_id, std::span<const Detection> found);

  /// The images that were added or merged.
  std::size_t images() const;

  /// The state, for `merge` on machines of the same byte order. Equal states give equal bytes.
  std::string partial() const;

  /// Adds the state of another evaluator of the same data set and options. Throws Error and changes
  /// nothing if they differ, it is broken, or it has an image that is here already.
  void merge(std::string_view partial);

  Evaluation result(Scope scope = Scope::added) const;

  /// For figures that an Evaluation lacks: what was matched in the images that were added, whose
  /// positions in the data set `images` gets, ascending.
  Matches matches(std::vector<std::uint32_t>& images) const;
  const Plan& plan() const { return *plan_; }

 private:
  struct State {
    bool added = false;
    std::uint32_t unknown_categories = 0;
  };

  std::uint64_t setting() const;  // a digest of data set and options

  std::shared_ptr<const Dataset> truth_;
  std::unique_ptr<const Plan> plan_;
  mutable std::mutex mutex_;  // guards what follows, an entry an image
  std::vector<State> state_;
  std::vector<ImageMatches> matches_;
};

}  // namespace millrace::coco
