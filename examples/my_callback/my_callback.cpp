// [callbacks.announce_best]: appends a line to a file whenever a metric reaches a new best value,
// for example for a chat bot, a dashboard or `tail -f`.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include <millrace/trainer/appended_file.h>
#include <millrace/trainer/callback.h>
#include <millrace/trainer/train_state.h>

namespace {

using namespace millrace;

/// The options of [callbacks.announce_best]. Reading, checking and `trainer list` use `describe`.
struct AnnounceOptions {
  std::string metric = "bbox/AP";
  std::string file = "best.txt";
  double at_least = 0;

  void describe(Options& o) {
    o.add("metric", metric, "metric to watch, named as in metrics.jsonl");
    o.add("file", file, "file to append lines to, relative to the run folder");
    o.add("at_least", at_least, "minimum value to announce");
  }
};

/// A callback with two additional roles: it reads metrics, and its state is saved in checkpoints.
class AnnounceBest final : public Callback, public ReadsMetrics, public SavesState {
 public:
  using Options = AnnounceOptions;

  explicit AnnounceBest(Options options) : options_(std::move(options)) {}

  /// Opens the file. On a resume, this drops lines written after the checkpoint; the run writes
  /// them again.
  void before_train(const TrainState& state) override {
    lines_.open(state, state.folder / options_.file);
  }

  /// Declares the metric, so that a metric which no callback publishes is an error before the first
  /// step.
  std::vector<std::string> watches() const override { return {options_.metric}; }

  /// Called at every step boundary with the metrics that callbacks have published; `of` is the
  /// point in training that they describe.
  void on_scalars(const TrainState&, const Moment& of, const Scalars& scalars) override {
    for (const auto& [name, value] : scalars) {
      if (name != options_.metric || value < options_.at_least) continue;
      if (best_ && value <= *best_) continue;
      best_ = value;
      lines_.append(fmt::format("step {}: {} {}\n", of.step, name, value));
    }
  }

  /// Returns the state to save in checkpoints: the best value and the length of the file.
  nlohmann::json save_state() const override {
    nlohmann::json state = {{"lines", lines_.state()}};
    if (best_) state["best"] = *best_;
    return state;
  }
  void load_state(const TrainState&, const nlohmann::json& saved) override {
    lines_.load(saved.at("lines"));
    if (saved.contains("best")) best_ = saved.at("best").get<double>();
  }

 private:
  AnnounceOptions options_;
  AppendedFile lines_;
  std::optional<double> best_;
};

MILLRACE_REGISTER(register_callback<AnnounceBest>(
    "announce_best", "appends a line to a file whenever a metric improves"));

}  // namespace
