#include "millrace/callbacks/common/scalar_writer.h"

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

namespace millrace {

void ScalarWriter::after_step(TrainState& state) {
  for (const auto& [name, value, kind] : state.scalars) {
    if (!std::isfinite(value)) continue;  // a skipped step; bad_steps counts it
    auto& window = window_[name];
    if (kind == FigureKind::last) window = {};
    window.sum += value;
    window.count += 1;
  }
}

void ScalarWriter::on_scalars(TrainState& state, const Moment& of, const Scalars& published) {
  if (!file_.is_open()) return;  // training failed before it began
  Scalars all;
  if (is_due_ && of.step == state.at.step) {
    all = of_window();
    window_.clear();
    is_due_ = false;
  }
  all.insert(all.end(), published.begin(), published.end());
  if (!all.empty()) file_.append(encode(of, all));
  // A run resumed from here continues this window.
  if (ends_ && of.step == state.at.step && !window_.empty())
    file_.append_provisionally(encode(of, of_window()));
}

Scalars ScalarWriter::of_window() const {
  Scalars scalars;
  for (const auto& [name, window] : window_)
    scalars.emplace_back(name, window.sum / static_cast<double>(window.count));
  return scalars;
}

nlohmann::json ScalarWriter::save_state() const {
  auto state = file_.state();
  auto& windows = state["window"] = nlohmann::json::object();
  for (const auto& [name, window] : window_) windows[name] = {window.sum, window.count};
  return state;
}

void ScalarWriter::load_state(TrainState&, const nlohmann::json& saved) {
  file_.load(saved);
  for (const auto& [name, window] : saved.at("window").items())
    window_[name] = {window.at(0), window.at(1)};
}

double seconds_since_1970() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<double>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count()) /
         1e3;
}

}  // namespace millrace
