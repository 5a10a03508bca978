// An error on the device ends a training run with a one-sentence message and exit code 1, without
// an abort.
#include "tests/cli/trainer.h"

namespace millrace::testing {
namespace {

class DeviceFault : public Trainer {
 protected:
  /// Trains with a callback that reads beyond the end of a tensor before the third step.
  Outcome train(const Words& more, const std::string& plugins) const {
    return trainer(on(make_data(), {"run", "--out", in_folder("runs")},
                      Words{plugins, "train.max_steps=5", "callbacks.checkpoint.enabled=false",
                            "callbacks.fault_on_device.enabled=true"} +
                          kTrainOnly + more));
  }

  static void expect_one_sentence(const Outcome& end, const std::string& part) {
    EXPECT_EQ(end.exit_code, 1) << end.err;
    const auto begin = end.err.rfind("trainer: error: ");
    ASSERT_NE(begin, end.err.npos) << end.err;
    const auto said = end.err.substr(begin);
    EXPECT_THAT(said, AllOf(HasSubstr("callback 'fault_on_device'"), HasSubstr("before_step: "),
                            HasSubstr(part)));
    EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
    EXPECT_THAT(end.err, AllOf(HasSubstr("after step 2"), Not(HasSubstr("frame #")),
                               Not(HasSubstr("terminate called"))));
  }
};

TEST_F(DeviceFault, IsReportedOnCpu) {
  expect_one_sentence(train({}, "plugins=['" MILLRACE_FAULT_PLUGIN "']"), "out of range");
}

TEST_F(DeviceFault, IsReportedOnGpu) {
  if (!fs::exists("/dev/nvidiactl")) GTEST_SKIP() << "no GPU";
  expect_one_sentence(train({"train.device='cuda'"},
                            "plugins=['" MILLRACE_CUDA_PLUGIN "', '" MILLRACE_FAULT_PLUGIN "']"),
                      "device-side assert");
}

}  // namespace
}  // namespace millrace::testing
