#include "millrace/callbacks/common/scalar_writer.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "millrace/base/disk/status_files.h"

namespace millrace {

void ScalarWriter::after_step(const TrainState& state) {
  file_.keep_provisional();
  record_.clear();
  for (const auto& [name, value, kind] : state.scalars) {
    if (!std::isfinite(value)) continue;  // skipped step, which bad_steps counts
    auto& window = window_[name];
    if (kind == MetricKind::last) window = {};
    window.sum += value;
    window.count += 1;
  }
}

void ScalarWriter::on_scalars(const TrainState& state, const Moment& of, const Scalars& published) {
  if (!file_.is_open()) return;  // training failed before before_train
  if (of.step != state.at.step) {
    if (!published.empty()) file_.append(encode(of, published));
    return;
  }
  const auto before = record_.size();
  if (std::exchange(is_due_, false)) {
    record_ = of_window();
    window_.clear();
  }
  record_.insert(record_.end(), published.begin(), published.end());
  const bool is_written = file_.has_provisional() && record_.size() == before;
  if (!record_.empty() && !is_written) {
    file_.drop_provisional();
    file_.append_provisionally(encode(of, record_));
  }
  // A run that resumes from here continues this window.
  if (ends_ && !window_.empty()) file_.append_provisionally(encode(of, of_window()));
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
  auto& record = state["record"] = nlohmann::json::array();
  for (const auto& [name, value] : record_) record.push_back({name, value});
  return state;
}

void ScalarWriter::load_state(const TrainState&, const nlohmann::json& saved) {
  file_.load(saved);
  // Older checkpoints do not have a record.
  for (const auto& one : saved.value("record", nlohmann::json::array()))
    record_.emplace_back(one.at(0), one.at(1).is_null() ? std::nan("") : one.at(1).get<double>());
  for (const auto& [name, window] : saved.at("window").items())
    window_[name] = {window.at(0), window.at(1)};
}

double seconds_since_1970() { return std::floor(wall_clock() * 1e3) / 1e3; }

}  // namespace millrace
