// [callbacks.checkpoint]: saves the training periodically and at its end. Keeps the last few
// checkpoints and some permanently.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "millrace/base/log.h"
#include "millrace/base/repeated.h"
#include "millrace/trainer/callback.h"
#include "millrace/trainer/checkpoint/checkpoint.h"
#include "millrace/trainer/checkpoint/checkpoint_holds.h"
#include "millrace/trainer/every.h"
#include "millrace/trainer/train_state.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

struct CheckpointOptions {
  std::string every = "1 epoch";
  std::int64_t keep = 3;
  std::string keep_every;

  void describe(Options& o) {
    o.add("every", every,
          "interval, counted in good steps only; also after the last step and on a stop")
        .affects(Affects::run);
    o.add("keep", keep, "number of newest checkpoints to keep; 0 = all", {.min = 0})
        .affects(Affects::run);
    o.add("keep_every", keep_every,
          "additionally keep one checkpoint for good at this interval, e.g. '10 epochs'; empty = "
          "never")
        .affects(Affects::run);
  }

  void check(const Config& table) const { check_period(table, "keep_every", keep_every); }
};

class SaveCheckpoints final : public Callback, public SavesState {
 public:
  using Options = CheckpointOptions;
  static constexpr bool kByDefault = true;

  explicit SaveCheckpoints(const Options& options) : keep_(static_cast<std::size_t>(options.keep)) {
    if (!options.keep_every.empty()) for_good_.emplace(parse_period(options.keep_every));
  }

  void before_train(const TrainState& state) override { saved_step_ = state.at.step; }

  void after_step(const TrainState& state) override {
    if (is_late_ && state.at.bad_in_a_row == 0) save(state);
    if (!for_good_ || !for_good_->is_due(state)) return;
    kept_.insert(state.at.step);
    state.save_checkpoint();
  }

  void trigger(const TrainState& state) override {
    // Bad steps may be the start of a divergence, so the checkpoints to return to are kept.
    is_late_ = state.at.bad_in_a_row > 0;
    if (!is_late_) save(state);
  }

  void after_train(const TrainState& state) override {
    // After an exception the state may be invalid and must not displace good checkpoints.
    if (state.failure.empty() && state.stop_reason() != kDivergence && saved_step_ != state.at.step)
      save(state);
  }

  void on_checkpoint(const TrainState& state, const fs::path& folder) override {
    saved_step_ = step_of(folder);
    log_info("saved checkpoint {}", folder.string());
    if (keep_ > 0) remove_old(state, folder.parent_path());
  }

  nlohmann::json save_state() const override {
    if (kept_.empty()) return {};
    return {{"kept", kept_}};
  }
  void load_state(const TrainState&, const nlohmann::json& saved) override {
    saved.at("kept").get_to(kept_);
  }

 private:
  void save(const TrainState& state) {
    is_late_ = false;
    state.save_checkpoint();
  }

  /// Keeps the newest checkpoints up to the one just saved. Later ones are damaged, since this
  /// training could not resume from them, and do not count.
  void remove_old(const TrainState& state, const fs::path& folder) const {
    if (state.at.failing_step > 0) return;  // the next return needs an older one
    auto old = list_checkpoints(folder);
    std::erase_if(old, [&](const auto& one) { return step_of(one) > saved_step_; });
    for (std::size_t i = 0; i + keep_ < old.size(); ++i) {
      const auto step = step_of(old[i]);
      if (kept_.contains(step) || state.checkpoint_holds->is_held(step)) continue;
      auto part = old[i];
      part += ".part";  // no longer a checkpoint, even if the process is killed here
      if (const auto problem = rename_path(old[i], part))
        throw fs::filesystem_error("cannot be renamed", old[i], problem);
      fs::remove_all(part);
    }
  }

  std::size_t keep_;
  std::optional<Every> for_good_;
  std::set<std::int64_t> kept_;  // steps whose checkpoints are kept permanently
  std::int64_t saved_step_ = 0;
  bool is_late_ = false;  // true if a checkpoint is due after the bad steps
};

MILLRACE_REGISTER(register_callback<SaveCheckpoints>("checkpoint",
                                                     "saves checkpoints of the training"));

}  // namespace
}  // namespace millrace
