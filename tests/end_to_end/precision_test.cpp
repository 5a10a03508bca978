// What is learned by heart in fp32 is learned in bf16. Minutes long where the processor emulates
// it, so labelled slow.
#include "tests/end_to_end/training.h"

namespace millrace::testing {
namespace {

using Precision = Training;

TEST_F(Precision, Bf16LearnsWhatFp32Learns) {
  std::vector<std::pair<double, double>> found;
  for (const std::string precision : {"fp32", "bf16"}) {
    const auto output = in_folder(precision);
    auto settings = by_heart(/*epochs=*/250);
    settings.push_back("train.precision=" + precision);
    const auto run = trainer(
        with_settings({"run", "configs/maskrcnn.toml", "--output", output.string()}, settings));
    ASSERT_EQ(run.exit_code, 0) << run.err;
    found.push_back(training_ap(with_settings({"eval", "configs/maskrcnn.toml"}, settings),
                                last_checkpoint(output)));
  }
  const auto [box, mask] = found[0];
  EXPECT_GT(box, 0.9);
  EXPECT_NEAR(found[1].first, box, 0.1);
  EXPECT_NEAR(found[1].second, mask, 0.1);
}

}  // namespace
}  // namespace millrace::testing
