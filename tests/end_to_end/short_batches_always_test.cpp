// Combines every detector with every way to lose an image and every way to divide a step. Takes
// minutes, so it is labelled slow.
#include <tuple>

#include "tests/end_to_end/short_batches.h"

namespace millrace::testing {
namespace {

class EveryWayToLoseImages
    : public ShortBatches,
      public ::testing::WithParamInterface<std::tuple<std::string, std::string>> {
 protected:
  static std::vector<Division> divisions() {
    std::vector<Division> all;
    for (const int ranks : {1, 2})
      for (const int accumulate : {1, 2})
        for (const int micro_batch : {0, 1, 2})
          for (const int passes : {1, 2})
            for (const int threads : {1, 2}) {
              const Division one{ranks, accumulate, micro_batch, passes, threads};
              const bool has_passes = passes * std::max(1, micro_batch) <= one.batch_size();
              if (has_passes && (threads == 1 || micro_batch == 1)) all.push_back(one);
            }
    return all;
  }
};

INSTANTIATE_TEST_SUITE_P(
    Everywhere, EveryWayToLoseImages,
    ::testing::Combine(::testing::Values("maskrcnn", "fasterrcnn", "cascadercnn", "retinanet",
                                         "yolox", "rtdetr"),
                       ::testing::Values("skip", "replace", "fail", "filter")),
    [](const auto& one) { return std::get<0>(one.param) + "_" + std::get<1>(one.param); });

TEST_P(EveryWayToLoseImages, TrainsWithRemainingImages) {
  const Recipe recipe{std::get<0>(GetParam()), std::get<1>(GetParam())};
  for (const auto& division : divisions())
    if (recipe.loss == "fail")
      expect_failure(recipe, division);
    else
      expect_step(recipe, division);
}

}  // namespace
}  // namespace millrace::testing
