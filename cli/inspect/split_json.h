// The figures of a split for scripts.
#pragma once

#include <vector>

#include "millrace/cli/command.h"
#include "millrace/cli/inspect/distributions.h"
#include "millrace/cli/inspect/split_view.h"

namespace millrace::cli {

/// Figures of a split as JSON.
Json to_json(const SplitView& split, const std::vector<Distribution>& all);

}  // namespace millrace::cli
