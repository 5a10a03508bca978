// train.on_divergence: a training whose losses are no numbers goes back to a checkpoint, on a real
// model with a rate that no training stands.
#include "tests/cli/trainer.h"

namespace millrace::testing {
namespace {

class Divergence : public Trainer {
 protected:
  fs::path data_ = make_data();

  Outcome train(const std::string& runs, const Words& overrides, const Words& more = {}) const {
    return trainer(
        on(data_, {"run", "--output", in_folder(runs)},
           kTrainOnly +
               Words{"train.max_steps=40", "train.epochs=100", "schedule.warmup='40 steps'",
                     "train.on_divergence='return'", "callbacks.checkpoint.every='5 steps'",
                     "callbacks.checkpoint.keep=100"} +
               overrides) +
        more);
  }
};

}  // namespace
}  // namespace millrace::testing
