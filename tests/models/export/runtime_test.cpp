// onnxruntime computes the same outputs as our detectors.
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "millrace/base/files.h"
#include "millrace/dataflow/detection/data_options.h"
#include "millrace/dataflow/image/bilinear.h"
#include "millrace/models/onnx/pixels.h"
#include "tests/models/export/exported.h"
#include "tests/models/export/runtime.h"

namespace millrace::testing {
namespace {

std::vector<SmallKind> kinds() {
  const auto masks = kFewProposals + "mask.conv_dim = 8\n";
  return {
      {"maskrcnn", masks},
      {"maskrcnn", masks + "style = 'torchvision'\n"},
      {"maskrcnn", masks + "test.aug_flip = true\n"},
      {"maskrcnn", masks + "test.aug_flip = true\ntest.aug_scales = [1.0, 1.5, 0.75]\n"},
      {"maskrcnn", masks + "boxes.offset = 1.0\nroi.sampling_ratio = 2\nbackground = 'first'\n"},
      {"maskrcnn", masks + "fpn.norm = 'gn'\n"},
      {"maskrcnn", kFewOnC4 + "mask.conv_dim = 8\n"},
      {"fasterrcnn", kFewProposals + "backbone.type = 'hrnet_w18'\nbackbone.norm = 'gn'\n"},
      {"fasterrcnn", kFewProposals + "backbone.type = 'resnet50'\nbackbone.width = 16\n"
                                     "backbone.groups = 4\nbackbone.width_per_group = 16\n"},
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

/// Returns photos of all sizes. An HRNet does not get the 1 x 1 photo: on its uniform pixels, group
/// norm makes many scores bit-identical, so their order depends on rounding.
std::vector<NamedPixels> photos_for(const SmallKind& kind) {
  auto photos = photos_of_all_sizes();
  if (kind.more.find("hrnet") != std::string::npos) photos.erase(photos.begin());
  return photos;
}

class Exported : public ::testing::TestWithParam<SmallKind> {};
INSTANTIATE_TEST_SUITE_P(ByName, Exported, ::testing::ValuesIn(kinds()), title_of);

TEST_P(Exported, MatchesOnnxruntimeForAllSizes) {
  NEEDS_RUNTIME();
  const Scratch scratch;
  const auto detector = decided_detector(GetParam());
  expect_right(exported(*detector, GetParam(), scratch, photos_for(GetParam())));
}

TEST_P(Exported, MatchesOnnxruntimeForPaddedBatches) {
  NEEDS_RUNTIME();
  if (GetParam().more.find("aug_scales") != std::string::npos) GTEST_SKIP() << "not supported";
  const Scratch scratch;
  const auto detector = decided_detector(GetParam());
  expect_right(exported(*detector, GetParam(), scratch, photos_for(GetParam()),
                        {.padded = true, .pasted = true}));
}

TEST(CheckScript, RejectsPathsAsFileNames) {
  NEEDS_RUNTIME();
  const Scratch scratch;
  const SmallKind kind{"retinanet", ""};
  const auto model = exported(*decided_detector(kind), kind, scratch, {made_photo(64, 64, 1)});
  const auto file = scratch / "model.certificate.json";
  auto text = nlohmann::json::parse(read_file(file));
  EXPECT_EQ(run(CHECK_SCRIPT " " + model.string()), 0);
  text["files"]["sub/../model.onnx"] = text["files"]["model.onnx"];
  std::filesystem::create_directory(scratch / "sub");
  scratch.file("model.certificate.json", text.dump());
  EXPECT_NE(run(CHECK_SCRIPT " " + model.string()), 0);
}

class ResizedPixels : public ::testing::TestWithParam<ResizeStyle> {};
INSTANTIATE_TEST_SUITE_P(Styles, ResizedPixels,
                         ::testing::Values(ResizeStyle::opencv, ResizeStyle::detectron2));

TEST_P(ResizedPixels, MatchOurKernelByteForByte) {
  NEEDS_RUNTIME();
  const bool antialiased = GetParam() == ResizeStyle::detectron2;
  const Scratch scratch;
  const Parameters none;
  onnx::Graph graph(none);
  const auto image = graph.input("image", onnx::Type::u8, {"h", "w", std::int64_t{3}}, ""),
             size = graph.input("size", onnx::Type::i64, {std::int64_t{2}}, "");
  graph.output(
      "resized",
      antialiased ? onnx::resize_antialiased(image, size) : onnx::resize_bilinear(image, size),
      {"H", "W", std::int64_t{3}}, "");
  graph.write(scratch / "resize.onnx", {"resize", "", "", {}});

  NamedTensors tensors;
  const auto add = [&](const std::string& name, const cv::Mat& pixels) {
    auto tensor = at::empty({pixels.rows, pixels.cols, 3}, at::kByte);
    std::copy_n(pixels.data, tensor.numel(), tensor.mutable_data_ptr<std::uint8_t>());
    tensors.emplace_back(name, tensor);
  };
  Rng rng{3};
  for (int i = 0; i < 40; ++i) {
    const auto side = [&] { return static_cast<int>(rng.between(1, i < 10 ? 9 : 700)); };
    const auto from = made_photo(side(), side(), static_cast<std::uint64_t>(i)).pixels;
    cv::Mat to(side(), side(), CV_8UC3);
    antialiased ? resize_antialiased(from, to) : resize_bilinear(from, to);
    const auto number = std::to_string(i);
    add(number + ".image", from);
    add(number + ".resized", to);
    tensors.emplace_back(number + ".size", at::tensor({to.rows, to.cols}, at::kLong));
  }
  write_safetensors(scratch / "resize.safetensors", tensors);
  const auto script = scratch.file("compare.py", R"(
import pathlib, sys
sys.path.insert(0, sys.argv[1])
import check_onnx, numpy, onnxruntime
t = check_onnx.tensors(pathlib.Path(sys.argv[2], "resize.safetensors"))
s = onnxruntime.InferenceSession(sys.argv[2] + "/resize.onnx", providers=["CPUExecutionProvider"])
for i in range(len(t) // 3):
    got = s.run(None, {"image": t[f"{i}.image"], "size": t[f"{i}.size"]})[0]
    assert numpy.array_equal(got, t[f"{i}.resized"]), (i, got.shape, t[f"{i}.image"].shape)
)");
  const auto folder = std::filesystem::path(CHECK_SCRIPT).parent_path();
  EXPECT_EQ(run(script.string() + " " + folder.string() + " " + scratch.path().string()), 0);
}

const SmallKind kMasks{"maskrcnn", kFewProposals + "mask.conv_dim = 8\n"};

TEST(Export, MatchesOnnxruntimeForExternalFp16Weights) {
  NEEDS_RUNTIME();
  const Scratch scratch;
  const auto detector = decided_detector(kMasks);
  expect_right(exported(*detector, kMasks, scratch, photos_of_all_sizes(),
                        {.storage = onnx::Storage::fp16}, prepared_data(), /*inline_bytes=*/1000));
  EXPECT_TRUE(std::filesystem::exists(scratch / "model.onnx.data"));
}

TEST(Export, MatchesOnnxruntimeForAnyObjectCount) {
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

TEST(Export, MatchesOnnxruntimeForLargeImages) {
  NEEDS_RUNTIME();
  const Scratch scratch;
  const auto detector = decided_detector(kMasks);
  expect_right(exported(*detector, kMasks, scratch,
                        {made_photo(1333, 800, 1), made_photo(500, 375, 2)}, {},
                        prepared_data(800, 1333)));
}

}  // namespace
}  // namespace millrace::testing
