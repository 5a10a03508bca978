#include "trainer/condition.h"

#include <gmock/gmock.h>

#include <cmath>

#include "base/errors.h"
#include "tests/fake_training.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Condition, ComparesWhatIsKnown) {
  testing::LineDetector model;
  TrainState state(model, {});
  state.at.step = 7;
  state.at.progress = 1.4;
  state.at.images = 14;
  state.scalars = {{"loss", 0.5}, {"lr", 0.01}};
  state.latest = {{"bbox/AP", 0.3}, {"val/loss", std::nan("")}};
  for (const auto* yes : {"step >= 7", "epoch > 1.3", "images == 14", "lr < 0.1", "loss <= 0.5",
                          "bbox/AP != 0.2", "bbox/AP == 0.3", " epoch  < 1e1 "})
    EXPECT_TRUE(Condition(yes).holds(state)) << yes;
  for (const auto* no : {"step > 7", "epoch >= 1.5", "bbox/AP > 0.3", "segm/AP >= 0",
                         "segm/AP != 1", "val/loss < 9", "val/loss != 9"})
    EXPECT_FALSE(Condition(no).holds(state)) << no;
}

TEST(Condition, RefusesWhatIsNone) {
  for (const auto* text :
       {"", "epoch", "epoch >=", "epoch 8", ">= 8", "epoch => 8", "epoch >= eight", "epoch >= 8x",
        "epoch >= nan", "epoch >= inf", "epoch >= 8 and step > 3", "epoch>=8"})
    EXPECT_THAT([&] { Condition(text, "callbacks.x.only_if"); },
                ThrowsMessage<ConfigError>(HasSubstr("callbacks.x.only_if: \"" + std::string(text) +
                                                     "\" is no condition")));
}

}  // namespace
}  // namespace millrace
