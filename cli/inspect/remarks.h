// What to know of the data before a training, and what to change.
#pragma once

#include <string>
#include <vector>

#include "millrace/cli/inspect/split_view.h"
#include "millrace/coco/data/findings.h"

namespace millrace::cli {

/// Something to know or to change. `name` is stable, for scripts: "anchors-too-large".
struct Remark {
  std::string name, text;
  coco::Severity severity = coco::Severity::note;
};

/// What to know before training. `learned` is what the detector gets, `photos` what there is: the
/// same unless the recipe makes other images of them; `val` may be missing.
std::vector<Remark> remarks(const SplitView& learned, const SplitView& photos, const SplitView* val,
                            const DataContext& context);

}  // namespace millrace::cli
