// Steps that exceed the memory cause a warning in advance, or a one-sentence error.
#include "tests/cli/trainer.h"
#include "tests/support/limited.h"

namespace millrace::testing {
namespace {

class Memory : public Trainer {
 protected:
  Outcome train(const fs::path& data, const Words& overrides = {}) const {
    return trainer(
        on(data, {"run", "--out", in_folder("runs")}, overrides + Words{"train.max_steps=1"}));
  }
};

TEST_F(Memory, WarnsIfLargestBatchCannotFit) {
  const auto data = make_data();
  const Limited memory(RLIMIT_DATA, rlim_t{3} << 29);
  // With this seed, the batch gets the smaller of the two sizes, so the step itself fits.
  const auto done = successful(
      train(data, kTrainOnly + Words{"data.val=''", "data.batch_size=1", "train.seed=1",
                                     "data.short_side=[64, 2000]", "data.max_side=4000"}));
  EXPECT_THAT(done.err, ContainsRegex("warning.*step 1 .*data.batch_size"));
}

TEST_F(Memory, WarnsAboutBatchLargerThanDataSet) {
  const auto done = successful(train(make_data(), {"data.batch_size=9"}));
  EXPECT_THAT(done.err, AllOf(HasSubstr("9 images"), HasSubstr("8 images"),
                              ContainsRegex("warning .*data.batch_size")));
}

TEST_F(Memory, ReportsStepOutOfMemory) {
  const auto data = make_data();
  const Limited address_space(RLIMIT_AS, rlim_t{5} << 29);
  const auto ended = train(
      data, {"data.stages=[{type='read'}, {type='decode'}, {type='group_by_aspect_ratio'}, "
             "{type='pad'}]",
             "unset=['data.short_side', 'data.max_side']", "data.batch_size=256", "data.threads=1",
             "train.threads=1", "data.memory=64", "model.backbone.width=64"});
  EXPECT_EQ(ended.exit_code, 1) << ended.err;
  EXPECT_THAT(ended.err, AllOf(HasSubstr("step 1"), HasSubstr("memory"), HasSubstr("256"),
                               HasSubstr("data.batch_size"), Not(HasSubstr("frame #"))));
}

}  // namespace
}  // namespace millrace::testing
