#include "callbacks/scalar_writer.h"

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "callbacks/appended_file.h"

namespace millrace {

void ScalarWriter::before_train(TrainState& state) {
  if (state.at.step == 0 && !then_) then_ = Written{};
  file_ = open(state, then_);
}

void ScalarWriter::after_step(TrainState& state) {
  for (const auto& [name, value] : state.scalars) {
    if (!std::isfinite(value)) continue;  // a skipped step; bad_steps counts it
    auto& mean = window_[name];
    mean.sum += value;
    mean.count += 1;
  }
}

void ScalarWriter::on_scalars(TrainState& state, const Moment& of, const Scalars& published) {
  Scalars all;
  if (is_due_ && of.step == state.at.step) {
    for (const auto& [name, mean] : window_)
      all.emplace_back(name, mean.sum / static_cast<double>(mean.count));
    window_.clear();
    is_due_ = false;
  }
  all.insert(all.end(), published.begin(), published.end());
  if (!all.empty()) append(encode(of, all));
}

void ScalarWriter::append(std::string_view bytes) const { append_to(file_, bytes); }

std::string ScalarWriter::save_state() const {
  std::error_code nothing_written;
  const auto bytes = std::filesystem::file_size(file_, nothing_written);
  auto window = nlohmann::json::object();
  for (const auto& [name, mean] : window_) window[name] = {mean.sum, mean.count};
  return nlohmann::json{{"file", file_.filename().string()},
                        {"bytes", nothing_written ? 0 : bytes},
                        {"window", window}}
      .dump();
}

void ScalarWriter::load_state(const std::string& text) {
  const auto state = nlohmann::json::parse(text);
  then_ = {state.at("file").get<std::string>(), state.at("bytes").get<std::uintmax_t>()};
  for (const auto& [name, mean] : state.at("window").items())
    window_[name] = {mean.at(0), mean.at(1)};
}

double seconds_since_1970() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<double>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count()) /
         1e3;
}

}  // namespace millrace
