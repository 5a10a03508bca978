// What `trainer inspect` has found, as one page.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "millrace/cli/inspect/distributions.h"
#include "millrace/cli/inspect/drawn_batches.h"
#include "millrace/cli/inspect/remarks.h"
#include "millrace/cli/inspect/split_view.h"
#include "millrace/page/gallery.h"

namespace millrace::cli {

/// A split with what is shown of it.
struct SplitChapter {
  SplitView view;
  page::Gallery gallery;
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

/// Equal input gives equal bytes.
std::string inspect_page(const Inspection& found);

}  // namespace millrace::cli
