// Chooses a first configuration for a data set and a machine, with reasons. All functions are pure:
// the same data and machine give the same choices.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "millrace/tools/data/anchor_coverage.h"
#include "millrace/tools/data/object_statistics.h"

namespace millrace::advice {

/// The machine that trains.
struct Machine {
  std::size_t cores = 1;
  double memory = 8e9;  // memory available to the training, in bytes
  bool gpu = false;
};

/// The initial weights of a training.
enum class Start {
  random,    // random initialisation
  backbone,  // a backbone trained on ImageNet
  detector,  // a whole detector trained on other data
};

/// The resize of images.
struct Sides {
  std::vector<std::int64_t> short_side;  // ascending; random in training, the last one in tests
  std::int64_t max_side = 0;
  std::int64_t own_side = 0;  // short side of the median image before the resize
  double small_object = 0;    // first quartile of object sizes at the last short side, in pixels
  bool too_small = false;     // true if small_object is well below kLeastObject because the machine
                              // limits the image size

  std::int64_t largest() const { return short_side.back(); }
  cv::Size of(cv::Size original) const;
};

/// Smallest object size (square root of the box area, in pixels) that is learned well: 2 x 2 cells
/// of the finest level, and two of its anchors.
inline constexpr double kLeastObject = 16;

/// Chooses the resize for data that is not resized yet, `original`. Images keep their size within
/// the machine's limit. They are enlarged if objects are smaller than kLeastObject and, without a
/// GPU, reduced if most objects are large.
Sides choose_sides(const SeenData& original, const Machine& machine);

struct Anchors {
  std::vector<double> sizes = {32, 64, 128, 256, 512}, ratios = {.5, 1, 2};  // published values
  CoverageSummary chosen, published;  // coverage by the chosen and by the published anchors

  /// Returns roi.canonical_box_size: 224 for anchors from 32 on, as published, and proportional for
  /// others.
  double canonical() const { return 7 * sizes.front(); }
};

/// Returns a detector's anchor rule with other sizes and ratios.
using RuleOf =
    std::function<AnchorRule(const std::vector<double>& sizes, const std::vector<double>& ratios)>;

/// Chooses anchors for a first training; `seen` has the objects after the resize. Sizes double from
/// level to level; those with the most objects that overlap an anchor by an IoU of 0.5 are chosen.
/// Ratios 1:4 and 4:1 may be added. Each change is made only if it covers another 1 % of the
/// objects.
Anchors choose_anchors(const SeenData& seen, const RuleOf& rule_of);

/// Searches for sizes that double from level to level and are better than those of `anchors`:
/// another 1 % of the objects have an anchor with the foreground IoU, and no fewer have one with an
/// IoU of 0.5. nullopt if not found.
std::optional<Anchors> better_sizes(const SeenData& seen, Anchors anchors, const RuleOf& rule_of);

/// Returns the batch size: up to 4 images (8 on a GPU) and up to a quarter of all images.
std::int64_t choose_batch(std::size_t images, const Machine& machine);

/// Returns the largest batch size up to `batch` that needs up to half of the memory, at
/// `image_bytes` per image.
std::int64_t batch_in_memory(std::int64_t batch, const Machine& machine, double image_bytes);

struct Plan {
  std::int64_t epochs = 1, steps = 1;  // total steps
  std::int64_t warmup = 1;             // in steps
  std::int64_t evaluate_every = 1;     // in epochs
  std::int64_t first_evaluation = 1;   // step of the first evaluation
  double lr = 0;                       // learning rate for kLrBatch images per step
};
inline constexpr std::int64_t kLrBatch = 4;

/// Plans a training with `images` images and batch size `batch`. `one_stage`: RetinaNet, whose
/// losses are larger, gets a lower learning rate.
Plan choose_plan(std::size_t images, std::int64_t batch, Start start, bool one_stage);

/// Explains the first result to check, the box AP50 of the first evaluation on `images` images, and
/// how to read it.
std::string first_check_text(const Plan& plan, Start start, std::size_t images);

/// Returns why images must not be flipped, judged by class names, such as "'left' names a side";
/// empty if they may be.
std::string no_flip_reason(const std::vector<std::string>& classes);

}  // namespace millrace::advice
