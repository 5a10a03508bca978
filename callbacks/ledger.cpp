// [callbacks.ledger]: writes the image ids of each step to ledger.jsonl.
#include <nlohmann/json.hpp>

#include "millrace/trainer/appended_file.h"
#include "millrace/trainer/callback.h"
#include "millrace/trainer/train_state.h"

namespace millrace {
namespace {

/// Writes a line per step: {"step":7,"ranks":2,"images":[[139,285],[632,724]]}, with the ids by
/// batch, in the order of TrainState::images. The concatenated ids are the same for any number of
/// ranks, and for a training that was killed and resumed.
class KeepLedger final : public Callback, public SavesState {
 public:
  void before_train(const TrainState& state) override {
    state.list_images();
    if (state.is_chief) file_.open(state, state.folder / "ledger.jsonl");
  }

  void after_step(const TrainState& state) override {
    if (!state.is_chief) return;
    const nlohmann::ordered_json line = {
        {"step", state.at.step}, {"ranks", state.cluster->size()}, {"images", state.images}};
    file_.append(line.dump() + "\n");
  }

  nlohmann::json save_state() const override { return file_.state(); }
  void load_state(const TrainState&, const nlohmann::json& saved) override { file_.load(saved); }

  // Runs on every rank, since each rank has to request the ids.
  bool chief_only() const override { return false; }

 private:
  AppendedFile file_;
};

MILLRACE_REGISTER(register_callback<KeepLedger>(
    "ledger", "writes the ids of the images of every step to ledger.jsonl"));

}  // namespace
}  // namespace millrace
