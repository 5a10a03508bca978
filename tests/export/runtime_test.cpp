// onnxruntime gives what our detectors do.
#include <cstdlib>
#include <filesystem>

#include "tests/export/exported.h"

namespace millrace::testing {
namespace {

std::string python() {
  if (const char* named = std::getenv("MILLRACE_PEERS_PYTHON")) return named;
  return std::filesystem::exists(EXPORT_PYTHON) ? EXPORT_PYTHON : "python3";
}

int run(const std::string& arguments) { return std::system((python() + " " + arguments).c_str()); }

bool has_runtime() {
  static const bool has = run("-c 'import onnx, onnxruntime' 2>/dev/null") == 0;
  return has;
}

#define NEEDS_RUNTIME() \
  if (!has_runtime())   \
  GTEST_SKIP() << python() << " has no onnx and onnxruntime (scripts/setup_python export)"

std::vector<Photo> photos_of_all_sizes() {
  return {made_photo(1, 1, 1),   made_photo(120, 90, 2),  made_photo(90, 121, 3),
          made_photo(7, 300, 4), made_photo(640, 480, 5), made_photo(333, 3, 6)};
}

/// The model is valid ONNX whose shapes can be inferred, and gives the certificate's answers.
void expect_right(const std::filesystem::path& model) {
  EXPECT_EQ(run("-c \"import onnx, sys; onnx.checker.check_model(sys.argv[1], full_check=True)\" " +
                model.string()),
            0);
  EXPECT_EQ(run(CHECK_SCRIPT " " + model.string()), 0);
}

std::vector<SmallKind> kinds() {
  const auto masks = kFewProposals + "mask.conv_dim = 8\n";
  return {
      {"maskrcnn", masks},
      {"maskrcnn", masks + "style = 'torchvision'\n"},
      {"maskrcnn", masks + "test.aug_flip = true\n"},
      {"maskrcnn", masks + "test.aug_flip = true\ntest.aug_scales = [1.0, 1.5, 0.75]\n"},
      {"maskrcnn", masks + "boxes.offset = 1.0\nroi.sampling_ratio = 2\nbackground = 'first'\n"},
      {"maskrcnn", masks + "fpn.norm = 'gn'\n"},
      {"fasterrcnn", kFewProposals},
      {"fasterrcnn", kFewProposals + "anchors.rounding = 'legacy'\ntest.min_size = 3.0\n"},
      {"fasterrcnn", kFewProposals + "box.type = '4conv1fc'\nbox.norm = 'gn'\nfpn.norm = 'gn'\n"
                                     "box.cls_agnostic_bbox_reg = true\nbackbone.deep_stem = true\n"
                                     "backbone.avg_down = true\n"},
      {"cascadercnn", kFewProposals + "masks = true\nmask.conv_dim = 8\n"},
      {"cascadercnn", kFewProposals + "style = 'torchvision'\nbox.type = '4conv1fc'\n"},
      {"retinanet", ""},
      {"retinanet", "style = 'torchvision'\ntest.aug_flip = true\n"},
      {"retinanet", "head.norm = 'gn'\nhead.num_convs = 1\ntest.topk_candidates = 30\n"}};
}

class Exported : public ::testing::TestWithParam<SmallKind> {};
INSTANTIATE_TEST_SUITE_P(ByName, Exported, ::testing::ValuesIn(kinds()), title_of);

TEST_P(Exported, OnnxruntimeGivesTheSameForImagesOfAllSizes) {
  NEEDS_RUNTIME();
  const Scratch scratch;
  const auto detector = decided_detector(GetParam());
  expect_right(exported(*detector, GetParam(), scratch, photos_of_all_sizes()));
}

TEST_P(Exported, OnnxruntimeGivesTheSameForPaddedBatchesAndPastedMasks) {
  NEEDS_RUNTIME();
  if (GetParam().more.find("aug_scales") != std::string::npos) GTEST_SKIP() << "is refused";
  const Scratch scratch;
  const auto detector = decided_detector(GetParam());
  expect_right(exported(*detector, GetParam(), scratch, photos_of_all_sizes(),
                        {.padded = true, .pasted = true}));
}

const SmallKind kMasks{"maskrcnn", kFewProposals + "mask.conv_dim = 8\n"};

TEST(Export, HalfWeightsAndTensorsInAFileBesideGiveTheSame) {
  NEEDS_RUNTIME();
  const Scratch scratch;
  const auto detector = decided_detector(kMasks);
  expect_right(exported(*detector, kMasks, scratch, photos_of_all_sizes(),
                        {.storage = onnx::Storage::fp16}, prepared_data(), /*inline_bytes=*/1000));
  EXPECT_TRUE(std::filesystem::exists(scratch / "model.onnx.data"));
}

TEST(Export, NoObjectAndAThousand) {
  NEEDS_RUNTIME();
  for (const auto* more : {"test.score_thresh = 0.9999\n",
                           "test.score_thresh = 0.0\n"
                           "test.nms_thresh = 0.95\nrpn.post_nms_top_n_test = 500\n"
                           "rpn.nms_thresh = 0.9\n"}) {
    const Scratch scratch;
    const SmallKind kind{"maskrcnn", kFewRegions + "mask.conv_dim = 8\n" + more};
    const auto detector = decided_detector(kind, 1000);
    expect_right(exported(*detector, kind, scratch, {made_photo(200, 150, 1)}));
  }
}

TEST(Export, LargeImages) {
  NEEDS_RUNTIME();
  const Scratch scratch;
  const auto detector = decided_detector(kMasks);
  expect_right(exported(*detector, kMasks, scratch,
                        {made_photo(1333, 800, 1), made_photo(500, 375, 2)}, {},
                        prepared_data(800, 1333)));
}

}  // namespace
}  // namespace millrace::testing
