// The messages of the plug-in if CUDA reports no usable driver or GPU.
#include "millrace/plugins/cuda/driver.h"

#include <gmock/gmock.h>

namespace millrace::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(MissingDriver, NothingIsMissingWhereThereIsAGpu) {
  EXPECT_EQ(missing({.count = 1, .supports = 13000, .runtime = 13000}), "");
  // Within a major version a driver may be older than the runtime, and it may always be newer.
  EXPECT_EQ(missing({.count = 8, .supports = 13000, .runtime = 13020}), "");
  EXPECT_EQ(missing({.count = 8, .supports = 14000, .runtime = 13000}), "");
}

TEST(MissingDriver, AnOldOneIsToldFromNone) {
  const std::string error = "CUDA driver version is insufficient for CUDA runtime version";
  const auto old =
      missing({.error = error, .supports = 12040, .runtime = 13000, .driver = "550.54.14"});
  EXPECT_THAT(old, AllOf(HasSubstr("a driver from 580 on, for CUDA 13"),
                         HasSubstr("this machine's driver 550.54.14 is for CUDA 12.4"),
                         HasSubstr("update the driver"), Not(HasSubstr("there is none"))));
  // CUDA reports the same error for an old and a missing driver.
  const auto none = missing({.error = error, .runtime = 13000});
  EXPECT_THAT(none, AllOf(HasSubstr("a driver from 580 on, for CUDA 13"),
                          HasSubstr("and there is none: " + error), Not(HasSubstr("update"))));
}

TEST(MissingDriver, OfAnUnknownCudaIsNamedWithoutANumber) {
  EXPECT_THAT(
      missing({.error = "insufficient", .supports = 13000, .runtime = 15010}),
      HasSubstr("it needs a driver for CUDA 15, and this machine's driver is for CUDA 13.0"));
}

TEST(MissingGpu, IsNoFaultOfTheDriver) {
  const DriverFacts facts{
      .error = "no CUDA-capable device is detected", .supports = 13000, .runtime = 13000};
  EXPECT_EQ(missing(facts),
            "it needs an NVIDIA GPU, and there is none: no CUDA-capable device is detected");
  auto hidden = facts;
  hidden.hides = true;
  EXPECT_THAT(missing(hidden), HasSubstr("detected (CUDA_VISIBLE_DEVICES is '')"));
  EXPECT_THAT(missing({.supports = 13000, .runtime = 13000}), HasSubstr("CUDA counts 0"));
}

TEST(DriverVersion, IsReadFromBothKindsOfModule) {
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
