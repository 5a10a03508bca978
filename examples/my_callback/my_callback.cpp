// [callbacks.announce_best]: appends a line to a file whenever a metric is better than it ever was, for a chat robot, a
// dashboard or `tail -f` to pick up.
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/errors.h"
#include "trainer/callback.h"
#include "trainer/train_state.h"

namespace {

using namespace millrace;

/// What [callbacks.announce_best] may say. Reading, checking and `trainer list` follow from `describe`.
struct AnnounceOptions {
  std::string metric = "bbox/AP";
  std::string file = "best.txt";
  double at_least = 0;

  void describe(Options& o) {
    o.add("metric", metric, "a scalar that a callback publishes, as metrics.jsonl names it");
    o.add("file", file, "where lines are appended; relative to the run's folder");
    o.add("at_least", at_least, "smaller values are not worth a line");
  }
};

class AnnounceBest final : public Callback {
 public:
  explicit AnnounceBest(AnnounceOptions options) : options_(std::move(options)) {}

  /// Called at every step boundary with what callbacks have published, `of` being the moment that it speaks of.
  void on_scalars(TrainState& state, const Moment& of, const Scalars& scalars) override {
    for (const auto& [name, value] : scalars) {
      if (name != options_.metric || value < options_.at_least) continue;
      if (best_ && value <= *best_) continue;
      best_ = value;
      announce(state, of);
    }
  }

  /// Checkpoints carry this, so that a resumed run does not announce what is known.
  std::string save_state() const override {
    return best_ ? nlohmann::json{{"best", *best_}}.dump() : std::string();
  }
  void load_state(const std::string& text) override {
    best_ = nlohmann::json::parse(text).at("best").get<double>();
  }

 private:
  void announce(const TrainState& state, const Moment& of) const {
    const auto path = state.folder / options_.file;
    std::ofstream out(path, std::ios::app);
    out << "step " << of.step << ": " << options_.metric << " " << *best_ << std::endl;
    // An error says what, where and what to do; training ends with it and with the name of this callback.
    if (!out) throw Error(path.string() + " cannot be written: choose another 'file'");
  }

  AnnounceOptions options_;
  std::optional<double> best_;
};

const bool registered = callbacks().add<AnnounceOptions>(
    "announce_best", "appends a line to a file whenever a metric improves",
    {[](const Config& table) {
      return std::make_unique<AnnounceBest>(read_options<AnnounceOptions>(table));
    }});

}  // namespace
