// [callbacks.memory_checkpoint]: keeps the training in the memory of every host, so that little is
// lost where checkpoints on disk are rare.
#include <memory>

#include "millrace/trainer/callback.h"
#include "millrace/trainer/checkpoint/memory_checkpoints.h"
#include "millrace/trainer/train_state.h"

namespace millrace {
namespace {

struct MemoryCheckpointOptions {
  std::string every = "1 step";
  void describe(Options& o) {
    o.add("every", every, "how often; the newest one stays").decides(Decides::run);
  }
};

class SaveInMemory final : public Callback {
 public:
  using Options = MemoryCheckpointOptions;

  void before_train(TrainState& state) override {
    state.memory_checkpoints = std::make_unique<MemoryCheckpoints>(state.folder, *state.cluster);
  }
  void trigger(TrainState& state) override { state.save_in_memory(); }

  // The memory of every host.
  bool chief_only() const override { return false; }
};

MILLRACE_REGISTER(register_callback<SaveInMemory>(
    "memory_checkpoint", "keeps the training in the memory of every host, to be resumed"));

}  // namespace
}  // namespace millrace
