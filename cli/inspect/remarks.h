// What to know of the data before a training, and what to change.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "millrace/cli/inspect/distributions.h"
#include "millrace/coco/data/findings.h"
#include "millrace/tools/data/adviser.h"

namespace millrace::cli {

/// Something to know or to change. `name` is stable, for scripts: "anchors-too-large".
struct Remark {
  std::string name, text;
  coco::Severity severity = coco::Severity::note;
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

/// What to know before training. `learned` is what the detector gets, `photos` what there is: the
/// same unless the recipe makes other images of them; `val` may be missing.
std::vector<Remark> remarks(const SplitView& learned, const SplitView& photos, const SplitView* val,
                            const DataContext& context);

}  // namespace millrace::cli
