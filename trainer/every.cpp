#include "trainer/every.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <map>
#include <sstream>

#include "base/errors.h"
#include "trainer/train_state.h"

namespace millrace {
namespace {

using Clock = std::chrono::steady_clock;

class Every final : public Callback {
 public:
  Every(Period period, std::unique_ptr<Callback> inner)
      : period_(period), inner_(std::move(inner)) {}

  void before_train(TrainState& state) override {
    last_ = Clock::now();
    inner_->before_train(state);
  }
  void before_epoch(TrainState& state) override { inner_->before_epoch(state); }
  void before_step(TrainState& state) override { inner_->before_step(state); }
  void after_step(TrainState& state) override {
    inner_->after_step(state);
    if (is_due(state) || state.is_last) inner_->trigger(state);
  }
  void after_epoch(TrainState& state) override { inner_->after_epoch(state); }
  void after_train(TrainState& state) override { inner_->after_train(state); }
  void trigger(TrainState& state) override { inner_->trigger(state); }
  void on_scalars(TrainState& state, const Moment& of, const Scalars& scalars) override {
    inner_->on_scalars(state, of, scalars);
  }
  void on_checkpoint(TrainState& state, const std::filesystem::path& folder) override {
    inner_->on_checkpoint(state, folder);
  }
  std::string save_state() const override { return inner_->save_state(); }
  void load_state(const std::string& json) override { inner_->load_state(json); }
  bool chief_only() const override { return inner_->chief_only(); }

 private:
  bool is_due(const TrainState& state) {
    const auto crossed = [&](double before, double now) {
      return std::floor(now / period_.length + 1e-9) > std::floor(before / period_.length + 1e-9);
    };
    const auto step = static_cast<double>(state.at.step);
    if (period_.unit == Period::Unit::steps) return crossed(step - 1, step);
    if (period_.unit == Period::Unit::epochs)
      return crossed(state.previous_progress, state.at.progress);
    if (std::chrono::duration<double>(Clock::now() - last_).count() < period_.length) return false;
    last_ = Clock::now();
    return true;
  }

  Period period_;
  std::unique_ptr<Callback> inner_;
  Clock::time_point last_;
};

}  // namespace

Period parse_period(std::string_view text, const std::string& where) {
  static const std::map<std::string, std::pair<double, Period::Unit>> kUnits = {
      {"step", {1, Period::Unit::steps}},      {"epoch", {1, Period::Unit::epochs}},
      {"second", {1, Period::Unit::seconds}},  {"minute", {60, Period::Unit::seconds}},
      {"hour", {3600, Period::Unit::seconds}},
  };
  std::istringstream words{std::string(text)};
  double count = 0;
  std::string unit, more;
  const bool two_words = (words >> count >> unit) && !(words >> more);
  if (unit.ends_with('s')) unit.pop_back();
  const auto known = kUnits.find(unit);
  if (!two_words || known == kUnits.end() || !(count > 0) || !std::isfinite(count))
    throw ConfigError(fmt::format(
        "{}: \"{}\" is no period; write it as \"500 steps\", \"1 epoch\" or \"10 minutes\"", where,
        text));
  if (known->second.second == Period::Unit::steps && count != std::floor(count))
    throw ConfigError(fmt::format("{}: \"{}\" is not a whole number of steps", where, text));
  return {count * known->second.first, known->second.second};
}

std::unique_ptr<Callback> every(Period period, std::unique_ptr<Callback> callback) {
  return std::make_unique<Every>(period, std::move(callback));
}

}  // namespace millrace
