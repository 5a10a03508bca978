// [callbacks.checkpoint]: saves the whole training now and then and at its end, and keeps the last
// few.
#include <filesystem>

#include "base/log.h"
#include "trainer/checkpoint.h"
#include "trainer/train_state.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

struct CheckpointOptions {
  std::string every = "1 epoch";
  std::int64_t keep = 3;

  void describe(Options& o) {
    o.add("every", every, "how often; also after the last step and when asked to stop");
    o.add("keep", keep, "newest ones that stay; 0: all", {.min = 0});
  }
};

class SaveCheckpoints final : public Callback {
 public:
  explicit SaveCheckpoints(std::int64_t keep) : keep_(static_cast<std::size_t>(keep)) {}

  void before_train(TrainState& state) override { saved_step_ = state.at.step; }

  void trigger(TrainState& state) override { state.save_checkpoint(); }

  void after_train(TrainState& state) override {
    // What an exception has left may be worth nothing: it must not push good checkpoints out.
    if (state.failure.empty() && saved_step_ != state.at.step) state.save_checkpoint();
  }

  void on_checkpoint(TrainState& state, const fs::path& folder) override {
    saved_step_ = state.at.step;
    spdlog::info("saved {}", folder.string());
    if (keep_ > 0) remove_old(folder.parent_path(), state.needed_checkpoints);
  }

 private:
  void remove_old(const fs::path& folder, const std::multiset<std::int64_t>& needed) const {
    const auto all = list_checkpoints(folder);
    for (std::size_t i = 0; i + keep_ < all.size(); ++i) {
      if (needed.contains(step_of(all[i]))) continue;
      auto part = all[i];
      part += ".part";  // no longer a checkpoint, even when killed in between
      fs::rename(all[i], part);
      fs::remove_all(part);
    }
  }

  std::size_t keep_;
  std::int64_t saved_step_ = 0;
};

const bool registered = callbacks().add<CheckpointOptions>(
    "checkpoint", "saves the training, to be resumed or used",
    {[](const Config& table) -> std::unique_ptr<Callback> {
       return std::make_unique<SaveCheckpoints>(read_options<CheckpointOptions>(table).keep);
     },
     /*by_default=*/true});

}  // namespace
}  // namespace millrace
