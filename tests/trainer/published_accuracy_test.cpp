#include "millrace/trainer/run/published_accuracy.h"

#include <gmock/gmock.h>

namespace millrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Recipe training(double epochs, double clip_norm) {
  Recipe recipe;
  recipe.train.epochs = epochs;
  recipe.optimizer.clip_norm = clip_norm;
  return recipe;
}

TEST(PublishedWarnings, AreOfLargeStepsAlone) {
  EXPECT_THAT(published_warnings(training(12, 0), 64), IsEmpty());
  EXPECT_THAT(published_warnings(training(12, 0), 128),
              ElementsAre(HasSubstr("128 images a step over 12 epochs"),
                          HasSubstr("without optimizer.clip_norm")));
  EXPECT_THAT(published_warnings(training(24, 1.5), 256), IsEmpty());
}

TEST(PublishedWarnings, LeaveOtherOptimizersAlone) {
  auto recipe = training(12, 0);
  recipe.optimizer.type = OptimizerType::adamw;
  EXPECT_THAT(published_warnings(recipe, 128), IsEmpty());
  recipe.optimizer.type = OptimizerType::sgd;
  recipe.optimizer.trust = Trust::lars;
  EXPECT_THAT(published_warnings(recipe, 128), ElementsAre(HasSubstr("over 12 epochs")));
}

}  // namespace
}  // namespace millrace::testing
