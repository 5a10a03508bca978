// What a detector asks of a step's totals, by its losses and without its network.
#pragma once

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "millrace/models/detector/knows_totals.h"

namespace millrace::testing {

/// Expects that KnowsTotals asks for what the losses ask for.
inline void expect_knows_totals(Detector& detector, const Batch& batch, StepInfo step) {
  struct Asked final : LossTotals {
    double sum(std::string_view name, double local) override {
      all.emplace_back(name, local);
      return local;
    }
    double largest(std::string_view name, double local) override {
      return sum("largest " + std::string(name), local);
    }
    std::vector<std::pair<std::string, double>> all;
  } by_losses, without;
  auto* knows = dynamic_cast<KnowsTotals*>(&detector);
  ASSERT_NE(knows, nullptr);
  const at::NoGradGuard no_graph;
  step.totals = &by_losses;
  detector.losses(batch, step);
  step.totals = &without;
  knows->ask_totals(batch, step);
  EXPECT_FALSE(without.all.empty());
  EXPECT_EQ(without.all, by_losses.all);
}

}  // namespace millrace::testing
