// A metric that a callback acts on, and its best value so far.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "millrace/base/options.h"
#include "millrace/trainer/metrics.h"

namespace millrace {

enum class Better { higher, lower };
inline std::vector<std::string> value_names(Better) { return {"higher", "lower"}; }

struct WatchOptions {
  std::string metric = "bbox/AP";
  Better better = Better::higher;

  void describe(Options& o);
};

class WatchedMetric {
 public:
  /// `min_delta`: a value is better only if the difference exceeds this.
  explicit WatchedMetric(const WatchOptions& options, double min_delta = 0)
      : name_(options.metric), higher_(options.better == Better::higher), min_delta_(min_delta) {}

  const std::string& name() const { return name_; }

  /// Returns its value in `scalars`; nullopt if it is missing. A score of -1 counts as missing,
  /// since there are no such objects; it is warned about once.
  std::optional<double> in(const Scalars& scalars);

  /// Returns true, and stores the value, if it is better than the best so far. The first number is
  /// better; NaN never is.
  bool improves(double value);

  const std::optional<double>& best() const { return best_; }
  void set_best(double value) { best_ = value; }

 private:
  std::string name_;
  bool higher_;
  double min_delta_;
  std::optional<double> best_;
  bool has_warned_ = false;
};

/// Counts how often in a row a metric has not improved.
class Stall {
 public:
  struct Options {
    WatchOptions watch;
    std::int64_t patience = 10;
    double min_delta = 0;

    void describe(millrace::Options& o, const std::string& then);
  };

  explicit Stall(const Options& options)
      : metric_(options.watch, options.min_delta), patience_(options.patience) {}

  const WatchedMetric& metric() const { return metric_; }

  std::optional<double> in(const Scalars& scalars) { return metric_.in(scalars); }

  /// Counts a value of the moment `of`.
  void add(double value, const Moment& of);

  bool is_over() const { return bad_ > patience_; }

  /// Resets the count but keeps the best value.
  void forgive() { bad_ = 0; }

  /// Returns e.g. "no bbox/AP better than 0.3123, of step 500, in 3 looks".
  std::string text() const;

  nlohmann::json state() const;
  void load(const nlohmann::json& saved);

 private:
  WatchedMetric metric_;
  std::int64_t patience_;
  std::int64_t bad_ = 0;
  std::int64_t best_step_ = -1;
};

}  // namespace millrace
