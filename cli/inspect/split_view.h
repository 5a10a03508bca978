// What `trainer inspect` looks at: a split as a detector sees it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "millrace/tools/data/adviser.h"
#include "millrace/tools/data/anchor_coverage.h"
#include "millrace/tools/data/object_statistics.h"

namespace millrace::cli {

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
  std::int64_t most_detections = 0;       // that the detector keeps in an image; 0: not known
  std::vector<double> anchor_ratios;      // empty: not known
  std::vector<double> anchor_sizes;       // likewise
  std::optional<advice::Anchors> better;  // with other sizes, if such are better
  double foreground = 0;                  // IoU from which an anchor learns an object
  std::string foreground_key;             // the option that says so
  std::int64_t short_side = 0;            // data.short_side that `seen` is of; 0: not known
};

}  // namespace millrace::cli
