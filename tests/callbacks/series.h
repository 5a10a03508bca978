// A callback that publishes a given series of values.
#pragma once

#include "millrace/trainer/callback.h"
#include "millrace/trainer/train_state.h"

namespace millrace::testing {

struct SeriesOptions {
  std::string every = "1 steps";
  Options::Reals values;
  void describe(Options& o) {
    o.add("every", every, "when");
    o.add("values", values, "values of `score`, one per step; 999 = NaN");
  }
};

struct PublishSeries final : Callback, PublishesMetrics {
  using Options = SeriesOptions;

  std::vector<double> values;

  explicit PublishSeries(const Options& options) : values(options.values) {}
  void trigger(const TrainState& s) override {
    const auto place = static_cast<std::size_t>(s.at.step - 1);
    if (place >= values.size()) return;
    s.publish({{"score", values[place] == 999 ? std::nan("") : values[place]}});
  }
  std::vector<std::string> publishes() const override { return {"score"}; }
};

}  // namespace millrace::testing
