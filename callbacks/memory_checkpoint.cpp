// [callbacks.memory_checkpoint]: saves the training in the memory of every host, so that little is
// lost if checkpoints on disk are infrequent.
#include "millrace/trainer/callback.h"
#include "millrace/trainer/train_state.h"

namespace millrace {
namespace {

struct MemoryCheckpointOptions {
  std::string every = "1 step";
  void describe(Options& o) {
    o.add("every", every, "interval; only the newest checkpoint is kept").affects(Affects::run);
  }
};

class SaveInMemory final : public Callback {
 public:
  using Options = MemoryCheckpointOptions;

  void before_train(const TrainState& state) override { state.keep_in_memory(); }
  void trigger(const TrainState& state) override { state.save_in_memory(); }

  // Runs on every rank, to use the memory of every host.
  bool chief_only() const override { return false; }
};

MILLRACE_REGISTER(register_callback<SaveInMemory>(
    "memory_checkpoint", "keeps a checkpoint in the memory of every host"));

}  // namespace
}  // namespace millrace
