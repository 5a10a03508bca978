// Hyper-parameters as functions of the training's state.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "millrace/trainer/callback.h"
#include "millrace/trainer/train_state.h"

namespace millrace {

/// Sets a hyper-parameter (HyperParameters::names) whenever a function returns another value than
/// before, so that a person's edit holds until then. A plug-in derives from it:
///
///   struct Pulse final : SetParameter {
///     Pulse(const NoOptions&, const std::string& name)
///         : SetParameter(name, "optimizer.momentum", [](const TrainState& state) {
///             return state.at.step % 2 == 0 ? 0.9 : 0.8;
///           }) {}
///   };
///   MILLRACE_REGISTER(register_callback<Pulse>("pulse", "momentum that comes and goes"));
class SetParameter : public Callback, public SavesState {
 public:
  /// Called before each step; nothing leaves the parameter as it is. It must depend on the state
  /// alone.
  using Value = std::function<std::optional<double>(const TrainState&)>;

  /// `name`: of the callback. `known`: values that will come, checked before the first step.
  SetParameter(std::string name, std::string parameter, Value value,
               std::vector<double> known = {});

  void before_train(const TrainState& state) override;
  void after_step(const TrainState& state) override { set(state); }
  nlohmann::json save_state() const override;
  void load_state(const TrainState&, const nlohmann::json& saved) override;

 private:
  void set(const TrainState& state);

  std::string name_;
  std::string parameter_;
  Value value_;
  std::vector<double> known_;
  std::optional<double> wanted_;
  std::int64_t changed_at_ = -1;  // step
};

/// A value from each point on, or linear between points.
struct ParameterPoints {
  std::vector<double> at;      // ascending
  std::vector<double> values;  // one for each
  bool linear = false;

  /// Nothing before the first point.
  std::optional<double> operator()(double place) const;
};

}  // namespace millrace
