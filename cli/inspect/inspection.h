// What `trainer inspect` has found, for programs and for the viewer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "millrace/cli/command.h"
#include "millrace/cli/inspect/distributions.h"
#include "millrace/cli/inspect/drawn_batches.h"
#include "millrace/cli/inspect/remarks.h"
#include "millrace/tools/report/gallery.h"

namespace millrace::cli {

/// A split with what is shown of it.
struct SplitChapter {
  SplitView view;
  report::Gallery gallery;
};

struct Inspection {
  std::string config;  // as it was named
  DrawnBatches batches;
  std::optional<SplitChapter> train, val;   // nothing where there are no annotations here
  std::optional<SplitView> sampled;         // of batches that are more than resized photos
  std::vector<Distribution> distributions;  // of what is learned
  std::vector<Remark> remarks;
  std::vector<std::string> notes;  // what could not be looked at, and why

  /// What the detector gets: `sampled`, else `train`.
  const SplitView& learned() const { return sampled ? *sampled : train->view; }
};

/// What --json prints, without the files that were written.
Json to_json(const Inspection& found);

/// The view of kind "inspection" (tools/report/README.md): the same, with pictures.
Json inspection_view(const Inspection& found);

}  // namespace millrace::cli
