// onnxruntime computes the same outputs as the detector.
#include "millrace/plugins/rtdetr/rtdetr.h"
#include "tests/models/export/runtime.h"
#include "tests/plugins/rtdetr/tiny.h"

namespace millrace::rtdetr::testing {
namespace {

using millrace::DataOptions;
using millrace::testing::Scratch;
using millrace::testing::SmallKind;

const std::string kTiny =
    "encoder.hidden_dim = 16\nencoder.ffn_dim = 32\nencoder.heads = 2\n"
    "decoder.hidden_dim = 16\ndecoder.ffn_dim = 32\ndecoder.heads = 2\ndecoder.layers = 2\n"
    "denoising.num_queries = 8\nbackbone.width = 16\n";
const std::string kV1 = kTiny +
                        "backbone.type = 'resnet18'\nencoder.expansion = 0.5\n"
                        "decoder.num_queries = 12\ntest.detections_per_img = 30\n";
const std::string kV2 = kTiny +
                        "version = 'v2'\nbackbone.type = 'resnet50'\ndecoder.points = 3\n"
                        "decoder.offset_scale = 0.7\ndecoder.num_queries = 12\n"
                        "test.score_thresh = 0.5\n";

std::vector<SmallKind> kinds() {
  return {{"rtdetr", kV1},
          {"rtdetr", kV2},
          // More queries than positions.
          {"rtdetr", kTiny + "backbone.type = 'resnet18'\ndecoder.num_queries = 1000\n"
                             "test.detections_per_img = 20\n"}};
}

std::unique_ptr<millrace::Detector> made_up_detector(const SmallKind& kind) {
  auto detector = millrace::detectors().at(kind.name).create(
      millrace::parse_config(kind.more, "tiny.toml"), {{"star", "ring", "disc"}, 1});
  set_made_up_weights(detector->parameters());
  detector->parameters_changed();
  return detector;
}

class Exported : public ::testing::TestWithParam<SmallKind> {
 protected:
  void expect_right(const millrace::ExportOptions& options, const DataOptions& data) const {
    const Scratch scratch;
    const auto detector = made_up_detector(GetParam());
    millrace::testing::expect_right(millrace::testing::exported(
        *detector, GetParam(), scratch, millrace::testing::photos_of_all_sizes(), options, data));
  }

  static DataOptions squares() {
    auto data = millrace::testing::prepared_data();
    data.resize_style = millrace::ResizeStyle::square;
    return data;
  }
};
INSTANTIATE_TEST_SUITE_P(ByName, Exported, ::testing::ValuesIn(kinds()),
                         millrace::testing::title_of);

TEST_P(Exported, MatchesOnnxruntimeForSquares) {
  NEEDS_RUNTIME();
  expect_right({}, squares());
}

TEST_P(Exported, MatchesOnnxruntimeForAllSizes) {
  NEEDS_RUNTIME();
  expect_right({}, millrace::testing::prepared_data());
}

TEST_P(Exported, MatchesOnnxruntimeForPaddedHalfPrecision) {
  NEEDS_RUNTIME();
  expect_right({.padded = true, .storage = onnx::Storage::fp16},
               millrace::testing::prepared_data());
}

}  // namespace
}  // namespace millrace::rtdetr::testing
