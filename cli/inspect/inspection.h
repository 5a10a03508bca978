// Results of `trainer inspect`, for programs and for the viewer.
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

/// A split with its gallery of images.
struct SplitChapter {
  SplitView view;
  report::Gallery gallery;
};

struct Inspection {
  std::string config;  // as named by the user
  DrawnBatches batches;
  std::optional<SplitChapter> train, val;   // nullopt without annotations
  std::optional<SplitView> sampled;         // if batches are more than resized photos
  std::vector<Distribution> distributions;  // of learned()
  std::vector<Remark> remarks;
  std::vector<std::string> notes;  // what could not be examined, and why

  /// Returns what the detector gets: `sampled` if it exists, otherwise `train`.
  const SplitView& learned() const { return sampled ? *sampled : train->view; }
};

/// Returns the output of --json, except the list of written files.
Json to_json(const Inspection& found);

/// Returns the view of kind "inspection" (tools/report/README.md): the output of --json with
/// pictures.
Json inspection_view(const Inspection& found);

}  // namespace millrace::cli
