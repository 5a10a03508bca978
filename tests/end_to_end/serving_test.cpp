// A training whose batches come from data servers ends with the weights of one that makes them
// itself, whatever becomes of the servers.
#include <memory>
#include <random>

#include "tests/cli/served.h"
#include "tests/end_to_end/training.h"

namespace millrace::testing {
namespace {

using ::testing::HasSubstr;

class ServedTraining : public Training {
 protected:
  fs::path data_ = make_data();

  std::vector<std::string> run_into(const std::string& output,
                                    std::vector<std::string> overrides = {}) const {
    overrides.insert(overrides.end(),
                     {"train.max_steps=30", "schedule.warmup_steps=2", "data.short_side=64",
                      "data.max_side=96", "callbacks.evaluate.enabled=false",
                      "callbacks.pictures.enabled=false", "callbacks.log.every=\"1 steps\""});
    return on(data_, {"run", "--output", in_folder(output).string()}, overrides);
  }
  std::string endpoint(int k) const {
    return "ipc://" + in_folder("socket-" + std::to_string(k)).string();
  }
  std::string sources() const {
    return "data.source=[\"" + endpoint(0) + "\", \"" + endpoint(1) + "\"]";
  }
  std::unique_ptr<Served> serve(int k) const {
    auto command =
        on(data_, {MILLRACE_TRAINER, "serve"}, {"data.short_side=64", "data.max_side=96"});
    command.insert(command.end(), {"--bind", endpoint(k)});
    return std::make_unique<Served>(command, in_folder("log-" + std::to_string(k)));
  }
  std::string weights(const std::string& output) const {
    return read_text(last_checkpoint(in_folder(output)) / "model.safetensors");
  }
};

TEST_F(ServedTraining, HasTheWeightsOfOneWithoutServersThoughTheyAreKilled) {
  const auto here = trainer(run_into("here"));
  ASSERT_EQ(here.exit_code, 0) << here.err;
  ASSERT_FALSE(weights("here").empty());

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
  const auto served = finish(child);
  ASSERT_EQ(served.exit_code, 0) << served.err;
  EXPECT_THAT(served.err, HasSubstr(": here, batches come"));
  EXPECT_TRUE(weights("served") == weights("here")) << kills << " kills";
}

}  // namespace
}  // namespace millrace::testing
