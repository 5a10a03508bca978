// Compares the counts that normalise a detector's losses: from counts(), which does not run the
// network, and from the losses.
#pragma once

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "millrace/models/detector/loss_sums.h"

namespace millrace::testing {

/// Expects the detector's counts() to equal the counts in its losses.
inline void expect_known_counts(Detector& detector, const Batch& batch, const StepInfo& step) {
  const at::NoGradGuard no_graph;
  const auto by_losses = counts_of(detector.loss_sums(batch, step));
  const auto known = detector.counts(batch, step);
  ASSERT_EQ(known.size(), by_losses.size());
  for (std::size_t i = 0; i < known.size(); ++i) {
    EXPECT_EQ(known[i].name, by_losses[i].name);
    EXPECT_EQ(known[i].number, by_losses[i].number) << known[i].name;
  }
}

}  // namespace millrace::testing
