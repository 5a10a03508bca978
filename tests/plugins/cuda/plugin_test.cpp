// Without a GPU, any command that loads the CUDA plug-in fails with a one-sentence message.
#include "tests/cli/trainer.h"

namespace millrace::testing {
namespace {

using ::testing::HasSubstr;

class CudaPlugin : public Trainer {
 protected:
  void SetUp() override {
    if (fs::exists("/dev/nvidiactl")) GTEST_SKIP() << "there is a GPU";
  }
  const std::string plugins_ = "plugins=[\"" MILLRACE_CUDA_PLUGIN "\"]";
};

TEST_F(CudaPlugin, ReportsMissingGpu) {
  for (const auto* command : {"config", "run"}) {
    const auto end = trainer({command, "configs/maskrcnn.toml", "--set", plugins_});
    // The message contains CUDA's error if there is a driver but no GPU, and the loader's error if
    // the driver or libtorch's CUDA libraries are missing.
    expect_error(end, 2, "'" MILLRACE_CUDA_PLUGIN "': requires ");
    EXPECT_THAT(end.err, HasSubstr("not found: "));
    EXPECT_THAT(end.err, ::testing::Not(HasSubstr("_Z"))) << "no mangled name";
  }
}

}  // namespace
}  // namespace millrace::testing
