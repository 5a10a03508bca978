// What there is to say about the data of a configuration: figures, and what they mean for a
// training.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "millrace/cli/command.h"
#include "millrace/doctor/anchor_coverage.h"
#include "millrace/doctor/object_statistics.h"

namespace millrace::cli {

/// The distribution of one figure.
struct Distribution {
  std::string id;     // for scripts: "object_size"
  std::string title;  // "Sizes of objects"
  std::string unit;   // what the axis says: "pixels, square root of the box's area"
  Histogram histogram;
  double most = 0;  // the highest value, which ends the last bin
  double median = 0;
  std::string meaning;  // a sentence or two
};

/// Something to know or to change. `name` is stable, for scripts: "anchors-too-large".
struct Remark {
  std::string name, text;
  bool is_warning = false;
};

/// One split, or what training reads, at the size that a detector sees.
struct SplitView {
  std::string name;  // "train2017"
  std::string seen;  // how images become that size: "shorter side 800, longer at most 1333 pixels"
  SeenData data;     // of which objects are counted
  bool is_sampled = false;               // `data` are images of batches, not the annotations
  std::vector<ObjectCoverage> coverage;  // of data.objects; empty: no anchors are known
};

/// What else the sentences go by.
struct DataContext {
  std::int64_t most_detections = 0;    // that the detector keeps in an image; 0: not known
  std::vector<double> anchor_ratios;   // empty: not known
  std::vector<double> anchor_sizes;    // likewise
  std::optional<AnchorAdvice> advice;  // better sizes, if there are any
  double foreground = 0;               // IoU from which an anchor learns an object
  std::string foreground_key;          // the option that says so
  std::int64_t short_side = 0;         // data.short_side that `seen` is of; 0: not known
};

/// Distributions of a split, those that the data can give: object_size, object_ratio,
/// objects_per_image, image_size, anchor_iou.
std::vector<Distribution> distributions(const SplitView& split, const DataContext& context);

/// What to know before training. `learned` is what the detector gets, `photos` what there is: the
/// same unless the recipe makes other images of them; `val` may be missing.
std::vector<Remark> remarks(const SplitView& learned, const SplitView& photos, const SplitView* val,
                            const DataContext& context);

/// Figures of a split as JSON.
Json to_json(const SplitView& split, const std::vector<Distribution>& all);

/// "under 16", "16 to 32", ... as kSizeBounds parts them.
std::vector<std::string> size_names();

}  // namespace millrace::cli
