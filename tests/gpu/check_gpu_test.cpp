// trainer check-gpu on the test device. The tests that it starts are in this folder.
#include "tests/cli/trainer.h"

namespace millrace::testing {
namespace {

class CheckGpu : public Trainer {
 protected:
  Outcome check(const Words& more) const {
    return trainer(
        Words{"check-gpu", "--small", "--device", "other", "--plugin", OTHER_DEVICE_PLUGIN} + more);
  }
};

TEST_F(CheckGpu, ReportsDeviceAndRunsTests) {
  const auto end = check({"--", "--gtest_filter=Tools.*"});
  EXPECT_THAT(end.out,
              AllOf(ContainsRegex("the device +of the tests' own"), HasSubstr("libtorch")));
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("[       OK ] Tools.DescribeDevice"));
}

TEST_F(CheckGpu, PrintsOnlyJson) {
  const auto end = check({"--json", "--", "--gtest_filter=Tools.*"});
  const auto found = Json::parse(end.out);
  EXPECT_EQ(found.at("device"), "other");
  EXPECT_EQ(found.at("facts").at("the device"), "of the tests' own");
  EXPECT_EQ(fs::path(found.at("tests")).filename(), "gpu_tests");
}

TEST_F(CheckGpu, ReturnsExitCodeOfTests) {
  EXPECT_EQ(check({"--", "--gtest_list_tests"}).exit_code, 0);
  EXPECT_EQ(check({"--", "--unknown"}).exit_code, 109);
}

TEST_F(CheckGpu, RejectsInstallationWithoutTests) {
  const auto built = fs::path(MILLRACE_TRAINER).parent_path() / "trainer-torch";
  std::error_code other_disk;
  fs::create_hard_link(built, in_folder("trainer-torch"), other_disk);
  if (other_disk) fs::copy_file(built, in_folder("trainer-torch"));
  const auto end = run(in_folder("trainer-torch"),
                       Words{"check-gpu", "--device", "other", "--plugin", OTHER_DEVICE_PLUGIN});
  EXPECT_EQ(end.exit_code, 1);
  EXPECT_THAT(end.err, HasSubstr(in_folder("gpu_tests").string()));
}

TEST_F(CheckGpu, RejectsMissingDevice) {
  expect_error(trainer({"check-gpu", "--plugin", "none.so"}), 2, "'none.so'");
  expect_error(trainer({"check-gpu", "--device", "tpu", "--plugin", OTHER_DEVICE_PLUGIN}), 2,
               "--device tpu");
  if (fs::exists("/dev/nvidiactl")) return;
  expect_error(trainer({"check-gpu"}), 2, "millrace_cuda.so");
}

}  // namespace
}  // namespace millrace::testing
