// [callbacks.evaluate]: COCO's twelve figures for boxes and masks over the validation split.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/log.h"
#include "base/text.h"
#include "trainer/evaluation.h"
#include "trainer/stop_signals.h"
#include "trainer/train_state.h"

namespace millrace {
namespace {

struct EvaluateOptions {
  std::string every = "1 epoch";
  std::int64_t images = 0;

  void describe(Options& o) {
    o.add("every", every, "how often; also after the last step");
    o.add("images", images, "only the first so many; 0: all", {.min = 0, .unit = "images"});
  }
};

class EvaluateDetector final : public Callback {
 public:
  explicit EvaluateDetector(std::int64_t images) : images_(images) {}

  void before_train(TrainState& state) override {
    if (!state.validation)
      spdlog::warn("no validation split (data.val): nothing will be evaluated");
  }

  void trigger(TrainState& state) override {
    if (!state.validation) return;
    const auto scores = evaluate_detector(
        state.model, *state.validation,
        {.max_images = images_, .cancelled = [] { return !StopSignals::received().empty(); }});
    if (!scores) return;  // asked to stop: there may be little time

    const auto folder = state.folder / "detections";
    make_writable_folder(folder);
    coco::write_detections(folder / fmt::format("step-{:06}.json", state.at.step),
                           scores->detections);
    state.publish(named_scores(*scores));
    state.publish({{"time/evaluate_s", scores->seconds}});
    remember(*scores, state.at.step);
  }

  void after_train(TrainState& state) override {
    if (!state.failure.empty() || tables_.empty()) return;
    spdlog::info("evaluation after step {}\n{}", step_, tables_);
    spdlog::info("best {} AP {:.4f}, after step {}; detections are in {}", best_kind_, best_,
                 best_step_, (state.folder / "detections").string());
  }

  std::string save_state() const override {
    if (tables_.empty()) return {};
    return nlohmann::json{{"tables", tables_},
                          {"step", step_},
                          {"best", best_},
                          {"best_step", best_step_},
                          {"best_kind", best_kind_}}
        .dump();
  }

  void load_state(const std::string& text) override {
    const auto state = nlohmann::json::parse(text);
    state.at("tables").get_to(tables_);
    state.at("step").get_to(step_);
    state.at("best").get_to(best_);
    state.at("best_step").get_to(best_step_);
    state.at("best_kind").get_to(best_kind_);
  }

 private:
  void remember(const DetectorScores& scores, std::int64_t step) {
    tables_ = score_tables(scores);
    step_ = step;
    const double box_ap = scores.boxes.stats[0];
    const double ap = scores.masks ? scores.masks->stats[0] : box_ap;
    if (best_step_ < 0 || ap > best_) {
      best_ = ap;
      best_step_ = step;
      best_kind_ = scores.masks ? "mask" : "box";
    }
    const auto masks = scores.masks ? fmt::format(", mask AP {:.4f}", scores.masks->stats[0]) : "";
    spdlog::info("step {}: box AP {:.4f}{} ({} in {})", step, box_ap, masks,
                 counted(scores.images, "image"), duration_text(scores.seconds));
  }

  std::int64_t images_;
  std::string tables_;  // of the last evaluation, after `step_`
  std::int64_t step_ = 0;
  double best_ = 0;
  std::int64_t best_step_ = -1;
  std::string best_kind_;
};

const bool registered = callbacks().add<EvaluateOptions>(
    "evaluate", "scores the detector over the validation split",
    {[](const Config& table) -> std::unique_ptr<Callback> {
       return std::make_unique<EvaluateDetector>(read_options<EvaluateOptions>(table).images);
     },
     /*by_default=*/true});

}  // namespace
}  // namespace millrace
