// Hyper-parameters that follow a function of the training's state.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "millrace/trainer/train_state.h"

namespace millrace {

/// A callback that keeps a hyper-parameter (HyperParameters::names) at what `value` gives: called before the first step
/// and after each, for the step that comes next; nothing leaves the parameter as it is. The parameter is set whenever
/// the function gives something else than before, so that a person's edit holds until then. The function must depend on
/// the state alone. Register it as any callback:
///
///   callbacks().add<NoOptions>("pulse", "momentum that comes and goes", {[](const Config&) {
///     return set_parameter("optimizer.momentum",
///                          [](const TrainState& s) { return s.at.step % 2 == 0 ? 0.9 : 0.8; });
///   }});
std::unique_ptr<Callback> set_parameter(
    std::string parameter, std::function<std::optional<double>(const TrainState&)> value);

/// A value from a point on; between two points perhaps a straight line.
struct ParameterPoints {
  std::vector<double> at;      // ascending
  std::vector<double> values;  // one for each
  bool linear = false;

  /// Nothing before the first point.
  std::optional<double> operator()(double place) const;
};

}  // namespace millrace
