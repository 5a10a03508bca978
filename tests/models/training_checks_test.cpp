#include "millrace/models/training_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/thrown.h"

namespace millrace::testing {
namespace {

using ::testing::HasSubstr;

TrainingFacts with_objects(std::int64_t objects) {
  return {.count_objects = [objects] { return ObjectCounts{.samples = 3, .objects = objects}; }};
}

TEST(TrainingChecks, RejectDataWithoutObjects) {
  require_objects({});  // unknown number of objects
  require_objects(with_objects(1));
  EXPECT_THAT(message_of([] { require_objects(with_objects(0)); }), HasSubstr("3 images"));
}

TEST(TrainingChecks, WarnAboutFrozenRandomLayers) {
  const auto warning = [](bool random, Norm norm, std::int64_t freeze_at) {
    return frozen_backbone_warning({.starts_random = random}, "resnet18", norm, freeze_at, Norm::bn)
        .value_or("");
  };
  EXPECT_EQ(warning(false, Norm::frozen_bn, 2), "");
  EXPECT_EQ(warning(true, Norm::bn, 0), "");
  EXPECT_THAT(warning(true, Norm::frozen_stats, 0), HasSubstr("model.backbone.norm = \"bn\""));
  EXPECT_THAT(warning(true, Norm::bn, 2), HasSubstr("model.backbone.freeze_at = 2"));
}

}  // namespace
}  // namespace millrace::testing
