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

/// Sets a hyper-parameter (HyperParameters::names) whenever a function returns a different value
/// than before, so that a user's edit remains until then. A plug-in can derive from it:
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
  /// Called before each step; nullopt = leave the parameter unchanged. The result must depend only
  /// on the state.
  using Value = std::function<std::optional<double>(const TrainState&)>;

  /// `name`: name of the callback. `known`: future values, which are checked before the first step.
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
  std::int64_t changed_at_ = -1;  // step of the last change
};

/// Values that start at points, or values interpolated linearly between points.
struct ParameterPoints {
  std::vector<double> at;      // points in ascending order
  std::vector<double> values;  // one per point
  bool linear = false;

  /// Returns the value at `place`; nullopt before the first point.
  std::optional<double> operator()(double place) const;
};

}  // namespace millrace
