// The choices of a first configuration for a data set and a machine, and why. Pure: the same data
// and machine give the same choices.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "millrace/tools/data/anchor_coverage.h"
#include "millrace/tools/data/object_statistics.h"

namespace millrace::advice {

/// What trains.
struct Machine {
  std::size_t cores = 1;
  double memory = 8e9;  // bytes that a training may take
  bool gpu = false;
};

/// What training starts from.
enum class Start {
  random,    // no weights
  backbone,  // a network trained on ImageNet
  detector,  // a whole detector, trained on other data
};

/// How images are resized.
struct Sides {
  std::vector<std::int64_t> short_side;  // ascending; one at random in training, the last in tests
  std::int64_t max_side = 0;
  std::int64_t own_side = 0;  // the median image's short side, before
  double small_object = 0;    // pixels: a quarter of the objects is smaller at the last short side
  bool too_small = false;     // they are below kLeastObject: the machine cannot bear larger images

  std::int64_t largest() const { return short_side.back(); }
  cv::Size of(cv::Size original) const;
};

/// The square root of a box's area, in pixels, from which objects are learned well: two cells of
/// the finest level by two, and two anchors of it.
inline constexpr double kLeastObject = 16;

/// `original`: not resized. Images keep their own size if the machine can bear it; small objects
/// are enlarged up to kLeastObject, and without a GPU images of large objects alone are reduced.
Sides choose_sides(const SeenData& original, const Machine& machine);

struct Anchors {
  std::vector<double> sizes = {32, 64, 128, 256, 512}, ratios = {.5, 1, 2};  // as published
  CoverageSummary chosen, published;  // how many objects these reach, and those before the choice

  /// Of roi.canonical_box_size: 224 to anchors from 32 on, as published.
  double canonical() const { return 7 * sizes.front(); }
};

/// The anchors of a detector with other sizes and ratios.
using RuleOf =
    std::function<AnchorRule(const std::vector<double>& sizes, const std::vector<double>& ratios)>;

/// Chooses anchors for a first training; `seen` has the objects after the resize. Takes the sizes,
/// doubling from level to level, with which the most objects overlap an anchor by half, and adds
/// the ratios 1:4 and 4:1: each only if it covers a hundredth of the objects more than the
/// published anchors do.
Anchors choose_anchors(const SeenData& seen, const RuleOf& rule_of);

/// Other sizes than `anchors` has, each twice as large as the last, under which a hundredth of the
/// objects more have an anchor with the foreground IoU, and no fewer one that overlaps them by
/// half. nullopt if there are none.
std::optional<Anchors> better_sizes(const SeenData& seen, Anchors anchors, const RuleOf& rule_of);

/// At most 4 images a step (8 on a GPU), and a quarter of all.
std::int64_t choose_batch(std::size_t images, const Machine& machine);

/// The largest batch up to `batch` that takes half of the memory, at `image_bytes` for each image.
std::int64_t batch_in_memory(std::int64_t batch, const Machine& machine, double image_bytes);

struct Plan {
  std::int64_t epochs = 1, steps = 1;  // steps in all
  std::int64_t warmup = 1;             // steps
  std::int64_t evaluate_every = 1;     // epochs
  std::int64_t first_evaluation = 1;   // its step
  double lr = 0;                       // at kLrBatch images a step
};
inline constexpr std::int64_t kLrBatch = 4;

/// `images` to train on, `batch` a step.
/// `one_stage`: RetinaNet, whose losses are larger.
Plan choose_plan(std::size_t images, std::int64_t batch, Start start, bool one_stage);

/// What to look at first, and what it means: the box AP50 of the first evaluation, on `images`.
std::string first_sign(const Plan& plan, Start start, std::size_t images);

/// Why images must not be mirrored, by the names of the classes: "'left' is a side"; empty: they
/// may.
std::string reason_against_flips(const std::vector<std::string>& classes);

}  // namespace millrace::advice
