// Remarks on the data before a training, with suggested changes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "millrace/cli/inspect/distributions.h"
#include "millrace/coco/data/findings.h"
#include "millrace/tools/data/adviser.h"

namespace millrace::cli {

/// A fact or a suggested change. `name` is stable, for scripts: "anchor-sizes".
struct Remark {
  std::string name, text;
  coco::Severity severity = coco::Severity::note;
};

/// Settings of the detector that the remarks depend on.
struct DataContext {
  std::int64_t max_detections = 0;        // maximum detections per image; 0 = not known
  std::vector<double> anchor_ratios;      // empty = not known
  std::vector<double> anchor_sizes;       // empty = not known
  std::optional<advice::Anchors> better;  // better sizes, if some were found
  double foreground = 0;                  // IoU from which an anchor is foreground
  std::string foreground_key;             // the option for `foreground`
  std::int64_t short_side = 0;            // data.short_side for `seen`; 0 = not known
};

/// Returns the remarks. `learned`: the detector's input; `photos`: the original images, the same
/// data unless the recipe composes other images of them; `val`: may be nullptr.
std::vector<Remark> remarks(const SplitView& learned, const SplitView& photos, const SplitView* val,
                            const DataContext& context);

}  // namespace millrace::cli
