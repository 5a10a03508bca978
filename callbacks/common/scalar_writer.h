// Base class of callbacks that write metrics to a file.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "millrace/trainer/appended_file.h"
#include "millrace/trainer/callback.h"
#include "millrace/trainer/train_state.h"

namespace millrace {

struct ScalarWriterOptions {
  std::string every = "20 steps";
  void describe(Options& o) {
    o.add("every", every, "interval; losses are means over it, rates and counts the last values")
        .affects(Affects::run);
  }
};

/// Appends the metrics of steps, summarized over windows of `every` (MetricKind), and the metrics
/// that callbacks publish, when they become known. Metrics that depend on the clock or the machine
/// are named "time/..."; all others are the same in every run of a configuration.
///
/// A training that ends within a window writes the partial window. A resumed run first removes
/// everything written after its checkpoint. The record of the current step is always the last:
/// metrics of earlier steps are inserted before it, and metrics that a resumed run publishes for
/// its checkpoint's step are merged into it.
class ScalarWriter : public Callback, public ReadsMetrics, public SavesState {
 public:
  using Options = ScalarWriterOptions;

  void before_train(const TrainState& state) override { open(state); }
  void after_step(const TrainState& state) override;
  void after_train(const TrainState&) override { ends_ = true; }
  void trigger(const TrainState&) override { is_due_ = true; }
  void on_scalars(const TrainState& state, const Moment& of, const Scalars& published) override;
  nlohmann::json save_state() const override;
  void load_state(const TrainState&, const nlohmann::json& saved) override;

 protected:
  /// Opens `file_`.
  virtual void open(const TrainState& state) = 0;

  /// Returns the bytes of one record.
  virtual std::string encode(const Moment& of, const Scalars& scalars) = 0;

  AppendedFile file_;

 private:
  struct Window {
    double sum = 0;
    std::int64_t count = 0;
  };

  Scalars of_window() const;

  std::map<std::string, Window> window_;
  Scalars record_;  // published metrics of the current step
  bool is_due_ = false;
  bool ends_ = false;  // true if after_train has been called
};

/// Returns the wall-clock time, to the millisecond, for display.
double seconds_since_1970();

}  // namespace millrace
