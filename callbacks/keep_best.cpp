// [callbacks.keep_best]: keeps the checkpoint with the best value of a metric as checkpoints/best.
// The callback of another table [callbacks.NAME] keeps it as checkpoints/NAME.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "millrace/base/disk/part_folder.h"
#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/callbacks/common/watched_metric.h"
#include "millrace/trainer/callback.h"
#include "millrace/trainer/checkpoint/checkpoint.h"
#include "millrace/trainer/train_state.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

/// Requests a checkpoint when the metric improves, so that checkpoint and metric are of the same
/// step.
class KeepBest final : public Callback, public ReadsMetrics, public SavesState {
 public:
  using Options = WatchOptions;

  KeepBest(const WatchOptions& options, const std::string& name)
      : metric_(options), folder_(name == "keep_best" ? "best" : name) {
    if (folder_ == "latest" || folder_.starts_with("step-"))
      throw ConfigError("callbacks." + name +
                        ": this name is reserved for checkpoints; choose another name");
  }

  void before_train(const TrainState& state) override {
    // A process that was killed may have saved the checkpoint without keeping it as the best.
    const auto saved = checkpoint_of(state.folder / "checkpoints", best_step_);
    if (best_step_ == state.at.step && fs::exists(saved)) link_as_best(saved);
  }

  void on_scalars(const TrainState& state, const Moment& of, const Scalars& scalars) override {
    const auto value = metric_.in(scalars);
    if (!value || !metric_.improves(*value)) return;
    best_step_ = of.step;
    if (of.step == state.at.step) return state.save_checkpoint();
    // Callbacks that publish metrics of an earlier step have requested and held its checkpoint.
    const auto saved = checkpoint_of(state.folder / "checkpoints", of.step);
    if (fs::exists(saved)) return keep(saved);
    log_warning("cannot keep the best {} so far, {:.4f}: step {} has no checkpoint", metric_.name(),
                *value, of.step);
  }

  void on_checkpoint(const TrainState&, const fs::path& folder) override {
    if (step_of(folder) == best_step_) keep(folder);
  }

  std::vector<std::string> watches() const override { return {metric_.name()}; }

  nlohmann::json save_state() const override {
    if (!metric_.best()) return {};
    return {{"best", *metric_.best()}, {"step", best_step_}};
  }
  void load_state(const TrainState&, const nlohmann::json& saved) override {
    metric_.set_best(saved.at("best").get<double>());
    saved.at("step").get_to(best_step_);
  }

 private:
  void keep(const fs::path& checkpoint) const {
    link_as_best(checkpoint);
    log_info("best {} so far, {:.4f}; kept checkpoint as {}", metric_.name(), *metric_.best(),
             (checkpoint.parent_path() / folder_).string());
  }

  /// Uses hard links, so that no bytes are copied and [callbacks.checkpoint] cannot remove the
  /// files.
  void link_as_best(const fs::path& checkpoint) const {
    PartFolder part(checkpoint.parent_path() / folder_, PartFolder::Existing::replace);
    for (const auto& file : fs::directory_iterator(checkpoint)) {
      std::error_code no_links;  // some file systems do not support hard links
      const auto name = part.path() / file.path().filename();
      fs::create_hard_link(file, name, no_links);
      if (no_links) fs::copy_file(file, name);
    }
    part.publish();
  }

  WatchedMetric metric_;
  std::string folder_;
  std::int64_t best_step_ = -1;
};

MILLRACE_REGISTER(register_callback<KeepBest>(
    "keep_best", "keeps the checkpoint with the best value of a metric"));

}  // namespace
}  // namespace millrace
