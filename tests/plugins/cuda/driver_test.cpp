// The plug-in's messages if CUDA reports no usable driver or GPU.
#include "millrace/plugins/cuda/driver.h"

#include <gmock/gmock.h>

namespace millrace::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(MissingDriver, IsNotReportedForWorkingGpu) {
  EXPECT_EQ(missing_driver_text({.count = 1, .supported_cuda = 13000, .runtime = 13000}), "");
  // A driver may be older than the runtime within a major version, and may always be newer.
  EXPECT_EQ(missing_driver_text({.count = 8, .supported_cuda = 13000, .runtime = 13020}), "");
  EXPECT_EQ(missing_driver_text({.count = 8, .supported_cuda = 14000, .runtime = 13000}), "");
}

TEST(MissingDriver, IsDistinguishedFromOldDriver) {
  const std::string error = "CUDA driver version is insufficient for CUDA runtime version";
  const auto old = missing_driver_text(
      {.error = error, .supported_cuda = 12040, .runtime = 13000, .driver = "550.54.14"});
  EXPECT_THAT(old, AllOf(HasSubstr("driver 580 "), HasSubstr("550.54.14"), HasSubstr("CUDA 12.4"),
                         HasSubstr("update the driver"), Not(HasSubstr("not found"))));
  // CUDA reports the same error for an old and a missing driver.
  const auto none = missing_driver_text({.error = error, .runtime = 13000});
  EXPECT_THAT(none, AllOf(HasSubstr("driver 580 "), HasSubstr("not found: " + error),
                          Not(HasSubstr("update"))));
}

TEST(MissingDriver, IsReportedWithoutVersionForUnknownCuda) {
  EXPECT_THAT(
      missing_driver_text({.error = "insufficient", .supported_cuda = 13000, .runtime = 15010}),
      AllOf(HasSubstr("CUDA 15"), HasSubstr("CUDA 13.0")));
}

TEST(MissingGpu, IsReportedIfDriverWorks) {
  const DriverFacts facts{
      .error = "no CUDA-capable device is detected", .supported_cuda = 13000, .runtime = 13000};
  EXPECT_THAT(missing_driver_text(facts), HasSubstr("GPU, not found: " + facts.error));
  auto hidden = facts;
  hidden.has_visible_devices = true;
  EXPECT_THAT(missing_driver_text(hidden), HasSubstr("detected (CUDA_VISIBLE_DEVICES is '')"));
  EXPECT_THAT(missing_driver_text({.supported_cuda = 13000, .runtime = 13000}),
              HasSubstr("CUDA reports 0"));
}

TEST(DriverVersion, IsReadFromBothModuleTypes) {
  EXPECT_EQ(driver_version("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22 "
                           "01:44:30 UTC 2024\nGCC version:  gcc version 12.3.0 (Ubuntu)\n"),
            "550.54.14");
  EXPECT_EQ(driver_version("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  "
                           "Release Build  (dvs-builder)  Sun Jul 27 07:20:41 UTC 2025\n"),
            "580.65.06");
  EXPECT_EQ(driver_version(""), "");
  EXPECT_EQ(driver_version("GCC version:  gcc version 12.3.0 \n"), "");
}

}  // namespace
}  // namespace millrace::cuda
