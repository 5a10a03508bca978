// Tests bench_scaled_runs, which starts its training runs with mpirun.
#include "tests/faults/mpirun.h"

namespace millrace::testing {
namespace {

class Scaling : public Mpirun {
 protected:
  Words bench(const std::string& ranks, const Words& more = {}) const {
    return on(make_data(), Words{"--steps", "2", "--ranks", ranks} + more,
              {"data.batch_size=2", "data.short_side=64", "data.max_side=96"});
  }
};

TEST_F(Scaling, KeepsImagesPerStep) {
  const auto all =
      successful(run(MILLRACE_SCALED_RUNS, bench("2,1", {"--json", "--out", in_folder("runs")})))
          .json();
  EXPECT_EQ(all.at("threads"), 1);
  ASSERT_EQ(all.at("runs").size(), 2) << all;
  const auto &one = all.at("runs").at(0), &two = all.at("runs").at(1);
  EXPECT_EQ(one.at("ranks"), 1);
  EXPECT_EQ(two.at("ranks"), 2);
  for (const auto& run : {one, two}) {
    EXPECT_EQ(run.at("images_per_step"), 2);
    EXPECT_NEAR(run.at("images_per_s").get<double>() * run.at("step_s").get<double>(), 2, 1e-6);
    EXPECT_GT(run.at("cpu_s"), 0);
    EXPECT_GT(run.at("predicted_step_s"), 0);
  }
  EXPECT_EQ(one.at("efficiency"), 1);
  EXPECT_EQ(one.at("sync_share"), 0);
  EXPECT_GT(two.at("sync_share"), 0);
  // The model was fitted to the first run.
  EXPECT_NEAR(one.at("predicted_step_s"), one.at("step_s").get<double>(), 1e-6);
  const auto record = read_json(in_folder("runs") / "ranks-2" / "maskrcnn-1" / "record.json");
  EXPECT_EQ(record.at("used").at("peak_memory_mib").size(), 2);
}

TEST_F(Scaling, RejectsIndivisibleBatch) {
  const auto outcome = run(MILLRACE_SCALED_RUNS, bench("1,3"));
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("data.batch_size"));
}

}  // namespace
}  // namespace millrace::testing
