// [callbacks.set_parameter]: sets a hyper-parameter to given values at points of the training.
#include "millrace/callbacks/set_parameter.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/base/options.h"
#include "millrace/trainer/optimizer/optimizer_options.h"

namespace millrace {
namespace {

enum class PointUnit { epochs, steps, images };
std::vector<std::string> value_names(PointUnit) { return {"epochs", "steps", "images"}; }

enum class Between { none, linear };
std::vector<std::string> value_names(Between) { return {"none", "linear"}; }

struct SetParameterOptions {
  std::string parameter = "lr_factor";
  std::vector<double> at;
  std::vector<double> values;
  PointUnit unit = PointUnit::epochs;
  Between between = Between::none;

  void describe(Options& o) {
    o.add("parameter", parameter,
          "hyper-parameter to change;  lr_factor multiplies the schedule's learning rate",
          HyperParameters::all_names());
    o.add("at", at, "points of the training, ascending", {.min = 0});
    o.add("values", values, "value from each point on");
    o.add("unit", unit, "unit of `at`");
    o.add("between", between,
          "values between two points: none = that of the first, linear = a straight line");
  }

  void check(const Config& table) const {
    require(table, "at", !at.empty(), "requires at least one point, e.g. at = [0, 8]");
    require(table, "values", values.size() == at.size(),
            fmt::format("has {} numbers, but `at` has {}; give one for each point", values.size(),
                        at.size()));
    require(table, "at", std::ranges::is_sorted(at, std::ranges::less_equal()),
            "must be ascending");
    const HyperParameters parameters{OptimizerOptions{}};
    for (const auto value : values) try {
        parameters.check(parameter, value);
      } catch (const ConfigError& problem) {
        require(table, "values", false, fmt::format("has {}: {}", value, problem.what()));
      }
  }
};

double place(const TrainState& state, PointUnit unit) {
  if (unit == PointUnit::steps) return static_cast<double>(state.at.step);
  if (unit == PointUnit::images) return static_cast<double>(state.at.images);
  return state.at.progress;
}

class SetParameterAtPoints final : public SetParameter {
 public:
  using Options = SetParameterOptions;

  SetParameterAtPoints(const Options& options, const std::string& name)
      : SetParameter(
            name, options.parameter,
            [points =
                 ParameterPoints{options.at, options.values, options.between == Between::linear},
             unit = options.unit](const TrainState& state) { return points(place(state, unit)); },
            options.values) {}
};

MILLRACE_REGISTER(register_callback<SetParameterAtPoints>(
    "set_parameter", "sets a hyper-parameter to given values at given points of the training"));

}  // namespace

SetParameter::SetParameter(std::string name, std::string parameter, Value value,
                           std::vector<double> known)
    : name_(std::move(name)),
      parameter_(std::move(parameter)),
      value_(std::move(value)),
      known_(std::move(known)) {}

void SetParameter::before_train(const TrainState& state) {
  state.hyper.at(parameter_);  // throws if it does not exist
  for (const auto value : known_) state.hyper.check(parameter_, value);
  set(state);
}

nlohmann::json SetParameter::save_state() const {
  return wanted_ ? nlohmann::json(*wanted_) : nullptr;
}

void SetParameter::load_state(const TrainState&, const nlohmann::json& saved) {
  wanted_ = saved.get<double>();
}

void SetParameter::set(const TrainState& state) {
  const auto wanted = value_(state);
  if (!wanted || wanted == wanted_) return;
  state.hyper.set(parameter_, *wanted, name_);
  if (!wanted_ || state.at.step != changed_at_ + 1)  // for a series of changes, only log the first
    log_info("callback '{}': {} is {} from step {}", name_, parameter_, *wanted, state.at.step + 1);
  wanted_ = wanted;
  changed_at_ = state.at.step;
}

std::optional<double> ParameterPoints::operator()(double place) const {
  const auto after = std::ranges::upper_bound(at, place) - at.begin();
  if (after == 0) return std::nullopt;
  const auto before = static_cast<std::size_t>(after - 1);
  if (!linear || before + 1 == at.size()) return values[before];
  const auto share = (place - at[before]) / (at[before + 1] - at[before]);
  return values[before] + share * (values[before + 1] - values[before]);
}

}  // namespace millrace
