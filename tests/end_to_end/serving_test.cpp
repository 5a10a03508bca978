// A training run that receives its batches from data servers ends with the same weights as one that
// makes its own batches, even if servers are killed.
#include <memory>
#include <random>

#include "tests/cli/served.h"
#include "tests/end_to_end/training.h"

namespace millrace::testing {
namespace {

class ServedTraining : public Training {
 protected:
  fs::path data_ = make_data();

  Words run_into(const std::string& output, const Words& overrides = {}) const {
    return on(data_, {"run", "--out", in_folder(output)},
              kTrainOnly + overrides +
                  Words{"train.max_steps=30", "schedule.warmup=2 steps", "data.short_side=64",
                        "data.max_side=96", "callbacks.log.every='1 steps'"});
  }
  std::string endpoint(int k) const {
    return "ipc://" + in_folder("socket-" + std::to_string(k)).string();
  }
  std::string sources() const {
    return "data.source=[\"" + endpoint(0) + "\", \"" + endpoint(1) + "\"]";
  }
  std::unique_ptr<Served> serve(int k) const {
    return std::make_unique<Served>(on(data_, {MILLRACE_TRAINER, "serve", "--bind", endpoint(k)},
                                       {"data.short_side=64", "data.max_side=96"}),
                                    in_folder("log-" + std::to_string(k)));
  }
};

TEST_F(ServedTraining, WritesSameWeightsIfServersAreKilled) {
  const auto here = successful(trainer(run_into("here")));
  ASSERT_FALSE(last_weights(in_folder("here")).empty());

  std::unique_ptr<Served> servers[] = {serve(0), serve(1)};
  const auto child = start(MILLRACE_TRAINER, run_into("served", {sources()}));
  std::mt19937 random(1);
  int kills = 0;
  for (int k = 0; waitpid(child, nullptr, WNOHANG | WNOWAIT) == 0; k = 1 - k) {
    ::usleep(std::uniform_int_distribution(300'000, 900'000)(random));
    servers[k].reset();
    servers[k] = serve(k);
    if (++kills > 200) break;
    siginfo_t info{};
    if (waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        info.si_pid == child)
      break;
  }
  const auto served = successful(finish(child));
  EXPECT_THAT(served.err, AnyOf(HasSubstr(endpoint(0)), HasSubstr(endpoint(1))));
  EXPECT_TRUE(last_weights(in_folder("served")) == last_weights(in_folder("here")))
      << kills << " kills";
}

}  // namespace
}  // namespace millrace::testing
