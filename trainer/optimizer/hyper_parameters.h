// Hyper-parameters, which may change during a training.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/base/options.h"

namespace millrace {

struct OptimizerOptions;

/// The hyper-parameters, named as in a configuration; `lr_factor` multiplies the learning rate of
/// the schedule. Changed values are part of a checkpoint. Only for the training thread.
class HyperParameters {
 public:
  explicit HyperParameters(const OptimizerOptions& options);

  /// Returns the names that every training has.
  static std::vector<std::string> all_names();

  /// Returns a value. Throws ConfigError if the name does not exist.
  double at(std::string_view name) const;
  std::vector<std::string> names() const;

  /// Requests a value from the next step on; `by` is the requesting callback. Throws Error if the
  /// name is unknown, the value is out of range, or another callback has requested a different
  /// value at this step boundary.
  void set(std::string_view name, double value, const std::string& by);

  /// Requests a value on behalf of a user, which overrides callbacks.
  void edit(std::string_view name, double value);

  /// Throws ConfigError if the name is unknown or the value out of range.
  void check(std::string_view name, double value) const;

  /// Applies the requested values.
  void apply();

  /// Returns the values that differ from their initial values.
  std::map<std::string, double> changed() const;

  /// Returns all values in the order of `names`, to be sent to other ranks.
  std::vector<double> values() const;
  void set_values(const std::vector<double>& values);

  /// Returns `options` with the current values.
  OptimizerOptions applied_to(OptimizerOptions options) const;

  /// Sets values returned by `changed`. Unknown names are ignored, since configurations may have
  /// different hyper-parameters.
  void load(const std::map<std::string, double>& values);

 private:
  struct Parameter {
    double initial = 0;
    Limits limits;
    double value = initial;
  };
  struct SetRequest {
    double value = 0;
    std::string by;
  };

  const Parameter& find(std::string_view name) const;

  std::map<std::string, Parameter, std::less<>> all_;
  std::map<std::string, SetRequest, std::less<>> requests_;
  std::map<std::string, double, std::less<>> edits_;
};

}  // namespace millrace
