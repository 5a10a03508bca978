#include "millrace/trainer/run/published_accuracy.h"

#include <gmock/gmock.h>

namespace millrace::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Recipe training(double epochs, double clip_norm) {
  Recipe recipe;
  recipe.train.epochs = epochs;
  recipe.optimizer.clip_norm = clip_norm;
  return recipe;
}

TEST(PublishedWarnings, AppearOnlyForLargeSteps) {
  EXPECT_THAT(published_warnings(training(12, 0), 64), IsEmpty());
  EXPECT_THAT(published_warnings(training(12, 0), 128),
              ElementsAre(AllOf(HasSubstr("128 images"), HasSubstr("12 epochs")),
                          HasSubstr("optimizer.clip_norm")));
  EXPECT_THAT(published_warnings(training(24, 1.5), 256), IsEmpty());
}

TEST(PublishedWarnings, DependOnOptimizer) {
  auto recipe = training(12, 0);
  recipe.optimizer.type = OptimizerType::adamw;
  EXPECT_THAT(published_warnings(recipe, 128), IsEmpty());
  recipe.optimizer.type = OptimizerType::sgd;
  recipe.optimizer.trust = Trust::lars;
  EXPECT_THAT(published_warnings(recipe, 128), ElementsAre(HasSubstr("12 epochs")));
}

}  // namespace
}  // namespace millrace::testing
