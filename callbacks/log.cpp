// [callbacks.log]: every scalar into the run's metrics.jsonl.
#include <chrono>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "callbacks/metrics_file.h"
#include "trainer/train_state.h"

namespace millrace {
namespace {

using Clock = std::chrono::steady_clock;

struct LogOptions {
  std::string every = "20 steps";
  void describe(Options& o) { o.add("every", every, "losses are averaged over so long"); }
};

/// A line speaks of its step, though what is measured in the background is written later. Figures that depend on the
/// clock are under "time" and "time/...": all others are the same in every run of a configuration. A
/// resumed run first drops what was written after its checkpoint.
class WriteMetrics final : public Callback {
 public:
  void before_train(TrainState& state) override {
    file_ = state.folder / "metrics.jsonl";
    if (state.at.step == 0 && !known_bytes_) known_bytes_ = 0;
    if (known_bytes_) cut_file(file_, *known_bytes_);
    start_clock(state);
  }

  void after_step(TrainState& state) override {
    for (const auto& [name, value] : state.scalars) {
      if (!std::isfinite(value)) continue;  // a skipped step; bad_steps counts it
      auto& mean = window_[name];
      mean.sum += value;
      mean.count += 1;
    }
  }

  void trigger(TrainState&) override { is_due_ = true; }

  void on_scalars(TrainState& state, const Moment& of, const Scalars& published) override {
    const bool has_window = is_due_ && of.step == state.at.step;
    if (!has_window && published.empty()) return;
    nlohmann::ordered_json line = {
        {"step", of.step}, {"epoch", of.progress}, {"time", seconds_since_1970()}};
    if (has_window) {
      for (const auto& [name, mean] : window_)
        line[name] = mean.sum / static_cast<double>(mean.count);
      add_speed(line, state);
      window_.clear();
      is_due_ = false;
      start_clock(state);
    }
    for (const auto& [name, value] : published) line[name] = value;
    append_line(file_, line.dump());
  }

  std::string save_state() const override {
    std::error_code nothing_written;
    const auto bytes = std::filesystem::file_size(file_, nothing_written);
    auto window = nlohmann::json::object();
    for (const auto& [name, mean] : window_) window[name] = {mean.sum, mean.count};
    return nlohmann::json{{"bytes", nothing_written ? 0 : bytes}, {"window", window}}.dump();
  }

  void load_state(const std::string& text) override {
    const auto state = nlohmann::json::parse(text);
    known_bytes_ = state.at("bytes").get<std::uintmax_t>();
    for (const auto& [name, mean] : state.at("window").items())
      window_[name] = {mean.at(0), mean.at(1)};
  }

 private:
  struct Mean {
    double sum = 0;
    std::int64_t count = 0;
  };

  static double seconds_since_1970() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<double>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count()) /
           1e3;
  }

  void start_clock(const TrainState& state) {
    started_ = Clock::now();
    images_ = state.at.images;
    data_wait_s_ = state.spent.data_s;
  }

  void add_speed(nlohmann::ordered_json& line, const TrainState& state) const {
    const auto seconds = std::chrono::duration<double>(Clock::now() - started_).count();
    line["time/images_per_s"] = static_cast<double>(state.at.images - images_) / seconds;
    line["time/data_wait_share"] = (state.spent.data_s - data_wait_s_) / seconds;
  }

  std::filesystem::path file_;
  std::optional<std::uintmax_t> known_bytes_;  // of the file, when the checkpoint was taken
  std::map<std::string, Mean> window_;
  bool is_due_ = false;
  Clock::time_point started_;
  std::int64_t images_ = 0;
  double data_wait_s_ = 0;
};

const bool registered = callbacks().add<LogOptions>(
    "log", "writes every scalar to metrics.jsonl",
    {[](const Config&) -> std::unique_ptr<Callback> { return std::make_unique<WriteMetrics>(); },
     /*by_default=*/true});

}  // namespace
}  // namespace millrace
