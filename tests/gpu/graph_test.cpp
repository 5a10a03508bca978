// Backbone and FPN, forward and backward, as one recorded graph.
#include "millrace/models/detector/device_tools.h"
#include "tests/gpu/on_device.h"
#include "tests/gpu/pyramid_step.h"

namespace millrace::testing {
namespace {

class RecordedGraph : public OnDevice, public ::testing::WithParamInterface<std::int64_t> {};

TEST_P(RecordedGraph, MatchesGradientsOfUnrecordedStep) {
  PyramidOptions options;
  if (small_)
    options.backbone = BackboneType::resnet18, options.width = 16, options.out_channels = 16;
  const std::int64_t height = small_ ? 64 : 800, width = small_ ? 96 : 1344;
  PyramidStep step(device_, options, {GetParam(), 3, height, width});
  step();
  const auto expected = step.gradient_norm();
  const auto graph = device_tools().at(tested().kind).create()->recorded(std::ref(step));
  graph();
  EXPECT_NEAR(step.gradient_norm(), expected, 1e-2 * expected);
  EXPECT_GT(expected, 0);
}

INSTANTIATE_TEST_SUITE_P(Batches, RecordedGraph, ::testing::Values(1, 2, 8));

}  // namespace
}  // namespace millrace::testing
