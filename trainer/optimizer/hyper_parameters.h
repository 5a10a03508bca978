// The numbers of a training that may change while it runs.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/base/options.h"

namespace millrace {

struct OptimizerOptions;

/// Named as in a configuration; `lr_factor` multiplies the schedule's rate. For the training
/// thread. Those that have changed are part of a checkpoint.
class HyperParameters {
 public:
  explicit HyperParameters(const OptimizerOptions& options);

  /// Those that every training has.
  static std::vector<std::string> all_names();

  /// Throws ConfigError if there is no such parameter.
  double at(std::string_view name) const;
  std::vector<std::string> names() const;

  /// Asks for a value from the next step on; `by` is the callback that asks. Throws Error if the
  /// name is unknown, the value out of range, or another callback has asked for another value at
  /// this boundary.
  void set(std::string_view name, double value, const std::string& by);

  /// The same for a person, who overrides callbacks.
  void edit(std::string_view name, double value);

  /// Throws ConfigError if the name is unknown or the value out of range.
  void check(std::string_view name, double value) const;

  /// Applies what was asked for.
  void apply();

  /// Those that differ from their initial values.
  std::map<std::string, double> changed() const;

  /// All values in the order of `names`, for other ranks.
  std::vector<double> values() const;
  void set_values(const std::vector<double>& values);

  /// `options` with the present values.
  OptimizerOptions applied_to(OptimizerOptions options) const;

  /// Sets what `changed` gave, except unknown names: configurations may differ in what they have.
  void load(const std::map<std::string, double>& values);

 private:
  struct Parameter {
    double initial = 0;
    Limits limits;
    double value = initial;
  };
  struct Wish {
    double value = 0;
    std::string by;
  };

  const Parameter& find(std::string_view name) const;

  std::map<std::string, Parameter, std::less<>> all_;
  std::map<std::string, Wish, std::less<>> wishes_;
  std::map<std::string, double, std::less<>> edits_;
};

}  // namespace millrace
