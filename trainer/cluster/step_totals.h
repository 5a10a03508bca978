// What the losses of a step in several parts are divided by.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "millrace/models/detector/detector.h"
#include "millrace/trainer/cluster/cluster.h"
#include "millrace/trainer/cluster/micro_batches.h"

namespace millrace {

/// Totals of a step of one batch per rank, or of several one after the other, which are added up in
/// their order. All ranks meet in every sum of a part whose shares are not known yet. Shares of the
/// ranks, and of the micro-batches that a rank computes side by side, are added as one tree.
///
/// The shares of all parts but the first are collected before (ask_totals_of); the first part then
/// completes the totals while its losses are computed, so that it needs one pass.
class StepTotals final : public LossTotals {
 public:
  /// Messages begin with the detector's `title`.
  explicit StepTotals(const Cluster& cluster, std::string title = "the detector",
                      std::size_t parts = 1)
      : cluster_(cluster), title_(std::move(title)), parts_(parts) {}

  /// The next sums are those of this part: 1, 2, ..., then 0, then any.
  void begin(std::size_t part) {
    part_ = part;
    asked_.clear();
  }

  /// Of part 0 and of any after it the total; else, in the pass that collects, the sum over the
  /// ranks for this part; asked for again with the same share, the same. Throws Error for a name
  /// that an earlier part did not ask for, or that this part has given another share of.
  double sum(std::string_view name, double local) override { return sum(name, {&local, 1}); }
  double largest(std::string_view name, double local) override {
    return largest(name, {&local, 1});
  }

  /// The same of a rank with several micro-batches side by side, by number.
  double sum(std::string_view name, std::span<const double> locals);
  double largest(std::string_view name, std::span<const double> locals);

  /// After the losses of part 0. Throws Error if nothing was asked for: then losses of parts would
  /// not add up.
  void complete();

 private:
  /// Shares of one name, combined over the ranks and over the parts.
  double combined(std::string_view name, std::span<const double> locals,
                  const std::function<double(const std::vector<double>&)>& over_ranks,
                  const std::function<double(double, double)>& over_parts);

  const Cluster& cluster_;
  const std::string title_;
  const std::size_t parts_;
  std::size_t part_ = 0;
  bool are_known_ = false;
  std::map<std::string, std::vector<double>, std::less<>> asked_;   // this part's, of this rank
  std::map<std::string, std::vector<double>, std::less<>> shares_;  // by part
};

/// StepTotals for one of the micro-batches that a rank computes side by side.
class MicroBatchTotals final : public LossTotals {
 public:
  /// Borrows both.
  MicroBatchTotals(MicroBatches& all, StepTotals& totals) : all_(all), totals_(totals) {}

  double sum(std::string_view name, double local) override {
    return all_.join(name, local,
                     [&](const std::vector<double>& locals) { return totals_.sum(name, locals); });
  }
  double largest(std::string_view name, double local) override {
    return all_.join(name, local, [&](const std::vector<double>& locals) {
      return totals_.largest(name, locals);
    });
  }

 private:
  MicroBatches& all_;
  StepTotals& totals_;
};

}  // namespace millrace
