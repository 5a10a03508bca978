// The real executable under mpirun with train.micro_batch: any number of ranks writes the same
// bytes, also if the run is resumed on a different number of ranks.
#include <utility>

#include "tests/end_to_end/same_bytes.h"

namespace millrace::testing {
namespace {

TEST_F(SameBytes, AreWrittenByAnyRankCount) {
  make_data();
  expect_same({"configs/maskrcnn.toml",
               on_samples({"model.backbone.width=16", "model.test.score_thresh=0.001"})},
              {2, 4});
}

/// A run evaluates and records metrics after its last step. Here it does so after every step, so
/// that stopping early changes nothing.
TEST_F(SameBytes, AreWrittenIfRankCountChanges) {
  make_data();
  Recipe recipe{
      "configs/retinanet.toml",
      on_samples({"model.backbone.width=16", "model.test.score_thresh=0.001",
                  "optimizer.type='adamw'", "optimizer.lr=1e-3",
                  "callbacks.evaluate.every='1 steps'", "callbacks.figures.every='1 steps'"})};
  const auto whole = train(recipe, 2, "whole");
  const int steps = std::exchange(recipe.steps, 1);
  train(recipe, 4, "parts");
  recipe.steps = 3;
  train(recipe, 1, "parts");
  recipe.steps = steps;
  EXPECT_TRUE(train(recipe, 4, "parts") == whole);
}

/// Uses the test device, on which backward passes run on a libtorch thread, as on a GPU.
TEST_F(SameBytes, AreWrittenOnADevice) {
  make_data();
  const auto recipe = [&](const Words& norms) {
    return Recipe{"configs/maskrcnn.toml",
                  on_samples(Words{"plugins=['" OTHER_DEVICE_PLUGIN "']", "train.device='other'",
                                   "model.backbone.width=16"} +
                             norms),
                  /*images=*/4, /*steps=*/2};
  };
  expect_same(recipe({"model.backbone.norm='gn'", "model.fpn.norm='gn'"}), {2, 4});

  // On a device, sync_bn can only sum statistics over ranks, not over micro-batches, so each rank
  // may have only one micro-batch.
  const auto statistics = recipe({});
  const auto refused = trainer(command(statistics, 1, in_folder("refused")));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("sync_bn"));
  EXPECT_TRUE(!fs::exists(in_folder("refused")) || fs::is_empty(in_folder("refused")));
  EXPECT_TRUE(train(statistics, 4, "4") == train(statistics, 4, "again"));
}

TEST_F(SameBytes, RequireSupportedSettings) {
  make_data();
  const Recipe recipe{"configs/maskrcnn.toml", on_samples({"model.backbone.width=16"}), 12};
  const auto refusal = [&](int ranks, const Words& settings, const std::string& why) {
    const auto own = with_settings(command(recipe, ranks, in_folder("refused")), settings);
    const auto outcome = ranks == 1 ? trainer(own) : Mpirun::ranks(ranks, MILLRACE_TRAINER, own);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_THAT(outcome.err, HasSubstr(why));
    EXPECT_FALSE(fs::exists(in_folder("refused")));
  };
  refusal(3, {}, "1, 2, 4, 8");
  refusal(1, {"train.micro_batch=5"}, "data.batch_size");
  refusal(1, {"train.threads=0"}, "train.threads");
  refusal(1, {"data.test_batch_size=2"}, "data.test_batch_size");
  refusal(1, {"train.gradient_type='bf16'"}, "train.gradient_type");
  refusal(1, {"model.backbone.norm='bn'"}, "model.backbone.norm");

  const auto drawing =
      trainer(with_settings({"config", "configs/coco/rtdetr_r18vd.toml"},
                            {"train.micro_batch=1", "train.threads=1", "data.test_batch_size=1"}));
  expect_error(drawing, 2, "multi_scale");
}

}  // namespace
}  // namespace millrace::testing
