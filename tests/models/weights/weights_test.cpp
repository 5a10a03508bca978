#include "millrace/models/weights/weights.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <limits>

#include "millrace/models/weights/formats.h"
#include "millrace/models/weights/model_card.h"
#include "tests/models/weights/loader_fixtures.h"
#include "tests/support/data.h"

namespace millrace {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::tensors_equal;

struct LoadWeights : ::testing::Test {
  const testing::Scratch scratch;
  const std::filesystem::path file = scratch / "w.safetensors";
};

/// Returns a model whose parameters are zero.
Parameters model_of(const std::vector<std::pair<std::string, std::vector<std::int64_t>>>& shapes) {
  Parameters parameters;
  for (const auto& [name, shape] : shapes)
    parameters.add(
        name, at::zeros(shape),
        name.find("running") == name.npos ? ParameterKind::weight : ParameterKind::buffer);
  return parameters;
}

at::Tensor value_of(const Parameters& parameters, const std::string& name) {
  return parameters.find(name)->value.detach();
}

TEST_F(LoadWeights, ReportsMissingUnusedAndMismatchedTensors) {
  const auto weight = at::arange(6, at::kFloat).view({2, 3});
  write_safetensors(
      file, {{"a.weight", weight}, {"extra", at::zeros({1})}, {"head.weight", at::zeros({81, 4})}});
  const auto model = model_of({{"a.weight", {2, 3}}, {"b.weight", {2}}, {"head.weight", {7, 4}}});

  const auto report = load_weights(model, file);

  EXPECT_EQ(report.loaded, 1U);
  EXPECT_THAT(report.missing, ElementsAre("b.weight"));
  EXPECT_THAT(report.unused, ElementsAre("extra"));
  EXPECT_THAT(report.mismatched, ElementsAre("head.weight: file (81, 4), model (7, 4)"));
  EXPECT_TRUE(tensors_equal(value_of(model, "a.weight"), weight));
  EXPECT_TRUE(model.find("a.weight")->trainable());
}

TEST_F(LoadWeights, ConvertsPrecisionAndIgnoresCounters) {
  write_safetensors(file, {{"model.a", at::full({2}, 1.5, at::kHalf)},
                           {"b", at::full({2}, 2.5, at::kBFloat16)},
                           {"bn1.num_batches_tracked", at::zeros({}, at::kLong)}});
  const auto model = model_of({{"a", {2}}, {"b", {2}}});
  const auto report = load_weights(model, file);
  EXPECT_EQ(report.loaded, 2U);
  EXPECT_THAT(report.unused, IsEmpty());
  EXPECT_TRUE(tensors_equal(value_of(model, "a"), at::full({2}, 1.5)));
  EXPECT_TRUE(tensors_equal(value_of(model, "b"), at::full({2}, 2.5)));
}

TEST_F(LoadWeights, StripsWrappersOfAnyDepth) {
  const std::vector<std::string> wrappers = {"module.", "_orig_mod.", "model.module.",
                                             "module._orig_mod.module."};
  NamedTensors stored = {{"module.model.own", at::full({2}, 1.0)}};
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> shapes = {{"model.own", {2}}};
  for (std::size_t i = 0; i < wrappers.size(); ++i) {
    const auto layer = "backbone.body.layer1.0.conv" + std::to_string(i) + ".weight";
    stored.emplace_back(wrappers[i] + layer, at::full({2}, 1.0));
    shapes.emplace_back(layer, std::vector<std::int64_t>{2});
  }
  write_safetensors(file, stored);
  const auto report = load_weights(model_of(shapes), file);
  EXPECT_EQ(report.loaded, stored.size());
  EXPECT_THAT(report.unused, IsEmpty());
}

TEST_F(LoadWeights, RecognisesTorchvisionNames) {
  const std::map<std::string, std::string> schemes = {{"zip.pth", "torchvision"},
                                                      {"legacy.pth", "torchvision-2019"},
                                                      {"module_prefix.pth", "torchvision"},
                                                      {"checkpoint.pth", "torchvision"},
                                                      {"fp32.safetensors", "torchvision"}};
  for (const auto& [name, scheme] : schemes) {
    const auto model = model_of({{"backbone.body.conv1.weight", {4, 3, 7, 7}},
                                 {"rpn.head.conv.0.0.weight", {5, 5, 3, 3}},
                                 {"backbone.fpn.inner_blocks.0.0.bias", {5}},
                                 {"roi_heads.mask_head.0.0.weight", {5, 5, 3, 3}}});
    const auto report = load_weights(model, testing::kFixtures / name);
    EXPECT_EQ(report.scheme, scheme) << name;
    EXPECT_EQ(report.loaded, 4U) << name;
    EXPECT_EQ(report.unused.size(), 9U) << name;
    EXPECT_EQ(report.notes.size(), name == "legacy.pth" ? 1U : 0U);
  }
}

constexpr const char* kScores = "roi_heads.box_predictor.cls_score.weight";
constexpr const char* kBoxes = "roi_heads.box_predictor.bbox_pred.weight";
constexpr const char* kMasks = "roi_heads.mask_predictor.mask_fcn_logits.bias";

/// Returns heads for `classes` classes. The value of each row is its class; 100 is the background.
NamedTensors heads(std::int64_t classes, Background background) {
  const auto column = [&](std::int64_t values, bool has_background) {
    auto labels = at::arange(classes, at::kFloat);
    const auto none = at::full({1}, 100.0);
    if (has_background)
      labels = background == Background::first ? at::cat({none, labels}) : at::cat({labels, none});
    return labels.repeat_interleave(values);
  };
  const bool first = background == Background::first;
  return {{kScores, column(1, true).view({-1, 1})},
          {kBoxes, column(4, first).view({-1, 1})},
          {kMasks, column(1, first)}};
}

Parameters model_with_heads(std::int64_t classes, Background background) {
  const bool first = background == Background::first;
  const auto rows = classes + first;
  auto model = model_of({{kScores, {classes + 1, 1}}, {kBoxes, {rows * 4, 1}}, {kMasks, {rows}}});
  const auto others = first ? Background::first : Background::none;
  model.set_classes(kScores, {1, background});
  model.set_classes(kBoxes, {4, others});
  model.set_classes(kMasks, {1, others});
  return model;
}

TEST_F(LoadWeights, ReordersRowsForBackgroundPosition) {
  for (const auto from : {Background::first, Background::last})
    for (const auto to : {Background::first, Background::last}) {
      write_safetensors(file, heads(3, from));
      const auto model = model_with_heads(3, to);
      const auto report = load_weights(model, file);
      EXPECT_EQ(report.loaded, 3U);
      for (const auto& [name, expected] : heads(3, to)) {
        // The background row stays zero if the file has no such row.
        const auto wanted = from == Background::last && name != kScores
                                ? at::where(expected == 100, at::zeros({}), expected)
                                : expected;
        EXPECT_TRUE(tensors_equal(value_of(model, name), wanted)) << name;
      }
    }
}

TEST_F(LoadWeights, LoadsCocoCategoriesFromNinetyIds) {
  write_safetensors(file, heads(90, Background::first));
  const auto model = model_with_heads(80, Background::last);
  const auto report = load_weights(model, file);
  EXPECT_EQ(report.loaded, 3U);
  EXPECT_THAT(report.notes, Contains(::testing::HasSubstr("80 categories")));
  const auto scores = value_of(model, kScores).flatten();
  EXPECT_EQ(scores[0].item<float>(), 0);    // person, id 1
  EXPECT_EQ(scores[11].item<float>(), 12);  // stop sign, id 13
  EXPECT_EQ(scores[79].item<float>(), 89);  // toothbrush, id 90
  EXPECT_EQ(scores[80].item<float>(), 100);
  EXPECT_EQ(value_of(model, kBoxes)[79 * 4 + 3].item<float>(), 89);
}

TEST_F(LoadWeights, ReportsHeadsOfDifferentClassCount) {
  auto stored = heads(3, Background::first);
  stored.emplace_back("a", at::full({2}, 1.5));
  write_safetensors(file, stored);
  auto model = model_with_heads(5, Background::first);
  model.add("a", at::zeros({2}), ParameterKind::weight);
  const auto report = load_weights(model, file);
  EXPECT_EQ(report.loaded, 1U);
  EXPECT_THAT(report.other_classes, Contains(std::string(kScores) + ": file 3 classes, model 5"));
  EXPECT_EQ(report.other_classes.size(), 3U);
  EXPECT_EQ(report.not_loaded().size(), 3U);
  EXPECT_EQ(value_of(model, kBoxes).abs().sum().item<float>(), 0);
}

/// Returns metadata for weights with these classes.
Metadata card(std::vector<std::string> classes) {
  return to_metadata({.classes = std::move(classes)});
}

TEST_F(LoadWeights, MatchesRowsByClassName) {
  for (const auto from : {Background::first, Background::last})
    for (const auto to : {Background::first, Background::last}) {
      write_weights(file, heads(3, from), card({"cat", "dog", "owl"}));
      const auto model = model_with_heads(3, to);
      const auto report = load_weights(model, file, {.classes = {"owl", "cat", "dog"}});
      EXPECT_EQ(report.loaded, 3U);
      EXPECT_THAT(report.not_loaded(), IsEmpty());
      const auto rows = value_of(model, kScores).flatten().narrow(0, to == Background::first, 3);
      EXPECT_TRUE(tensors_equal(rows, at::tensor({2.0F, 0.0F, 1.0F})));
      const auto boxes =
          value_of(model, kBoxes).flatten().narrow(0, to == Background::first ? 4 : 0, 12);
      EXPECT_TRUE(tensors_equal(boxes, at::tensor({2.0F, 0.0F, 1.0F}).repeat_interleave(4)));
    }
}

TEST_F(LoadWeights, ReportsClassesMissingInFile) {
  write_weights(file, heads(3, Background::last), card({"cat", "dog", "owl"}));
  auto model = model_with_heads(4, Background::last);
  model.find(kScores)->value.detach().fill_(-1);
  const auto report = load_weights(model, file, {.classes = {"bee", "owl", "ant", "cat"}});
  EXPECT_TRUE(tensors_equal(value_of(model, kScores).flatten(),
                            at::tensor({-1.0F, 2.0F, -1.0F, 0.0F, 100.0F})));
  EXPECT_THAT(report.new_classes, ElementsAre("bee", "ant"));
  EXPECT_THAT(report.notes, Contains(::testing::HasSubstr("dog")));
  EXPECT_EQ(report.not_loaded().size(), 2U);

  const auto none = load_weights(model_of({{kScores, {4, 1}}, {"a", {1}}}), file);
  EXPECT_EQ(none.loaded, 1U) << "without class names, rows are loaded in file order";
}

TEST_F(LoadWeights, RejectsFrozenParametersThatWereNotLoaded) {
  auto stored = heads(3, Background::first);
  stored.emplace_back("a", at::full({2}, 1.5));
  write_weights(file, stored, card({"cat", "dog", "owl"}));
  auto model = model_with_heads(3, Background::first);
  model.add("a", at::zeros({3}), ParameterKind::weight);
  model.add("b", at::zeros({2}), ParameterKind::norm);
  const auto report = load_weights(model, file, {.classes = {"owl", "bee", "dog"}});
  // A wrong shape, a missing tensor, and rows of a class that the file lacks.
  for (const std::string name : {"a", "b", kBoxes})
    MILLRACE_EXPECT_ERROR(check_frozen_loaded(report, {name}, file, {}), file, name);
  check_frozen_loaded(report, {}, file, {});
  check_frozen_loaded(report, {"a"}, file, {.asked = true});
  const auto whole = load_weights(model, file, {.classes = {"owl", "cat", "dog"}});
  check_frozen_loaded(whole, {kScores, kBoxes, kMasks}, file, {});
}

TEST_F(LoadWeights, MatchesAnchorRowsByClassName) {
  // Two anchors per cell, three classes.
  write_weights(file, {{"logits.bias", at::arange(6, at::kFloat)}}, card({"cat", "dog", "owl"}));
  auto model = model_of({{"logits.bias", {6}}});
  model.set_classes("logits", {.values = 1, .repeats = 2});
  load_weights(model, file, {.classes = {"owl", "cat", "dog"}});
  EXPECT_TRUE(tensors_equal(value_of(model, "logits.bias"),
                            at::tensor({2.0F, 0.0F, 1.0F, 5.0F, 3.0F, 4.0F})));
}

TEST_F(LoadWeights, RejectsReorderedClassesIfRowsAreUnknown) {
  write_weights(file, {{"logits.bias", at::arange(2, at::kFloat)}}, card({"cat", "dog"}));
  const auto model = model_of({{"logits.bias", {2}}});
  MILLRACE_EXPECT_ERROR(load_weights(model, file, {.classes = {"dog", "cat"}}), file,
                        "Parameters::set_classes");
  EXPECT_EQ(load_weights(model, file, {.classes = {"cat", "dog"}}).loaded, 1U);
}

TEST_F(LoadWeights, RejectsNonFiniteValuesUnlessForced) {
  auto bad = at::full({4}, 1.0F);
  bad[1] = std::numeric_limits<float>::quiet_NaN();
  bad[2] = std::numeric_limits<float>::infinity();
  write_safetensors(file, {{"a", at::full({2}, 1.0F)}, {"b", bad}});
  const auto model = model_of({{"a", {2}}, {"b", {4}}});
  MILLRACE_EXPECT_ERROR(load_weights(model, file), file, "'b': 2 of its 4 values");
  EXPECT_EQ(load_weights(model, file, {.force_weights = {true, "--force-weights"}}).loaded, 2U);
  // A value beyond the range of the model's type becomes infinite.
  write_safetensors(file, {{"a", at::full({2}, 1e300, at::kDouble)}, {"b", at::full({4}, 1.0F)}});
  MILLRACE_EXPECT_ERROR(load_weights(model, file), file, "'a': 2 of its 2 values");
}

TEST_F(LoadWeights, ReadsCheckpointFolder) {
  write_safetensors(scratch / "model.safetensors", {{"a", at::full({2}, 1.5)}});
  EXPECT_EQ(load_weights(model_of({{"a", {2}}}), scratch / "").loaded, 1U);
}

TEST_F(LoadWeights, RejectsFileWithoutMatchingTensor) {
  write_safetensors(file, {{"x", at::zeros({1})}, {"y", at::zeros({1})}});
  const auto model = model_of({{"a", {2}}, {"y", {2}}});
  MILLRACE_EXPECT_ERROR(load_weights(model, file), file, "2 tensors (x, y: file (1), model (2))");
}

TEST_F(LoadWeights, RejectsMissingAndInvalidFiles) {
  const auto model = model_of({{"a", {2}}});
  const auto none = scratch / "none.npz";
  MILLRACE_EXPECT_ERROR(load_weights(model, none), none, "not found");
  const auto png = scratch.file("w.png", "\x89PNG\r\n");
  MILLRACE_EXPECT_ERROR(load_weights(model, png), png, ".safetensors");
  const auto empty = scratch.file("w.npz", "");
  MILLRACE_EXPECT_ERROR(load_weights(model, empty), empty, "zip archive");
}

TEST_F(LoadWeights, ReadsTensorpackResNet50) {
  MILLRACE_NEEDS_DATA("weights");
  const auto npz = testing::data_folder() / "weights" / "R50_C1-C4_imagenet_msra_fp16.npz";
  const auto model = model_of({{"backbone.body.conv1.weight", {64, 3, 7, 7}},
                               {"backbone.body.bn1.weight", {64}},
                               {"backbone.body.bn1.running_var", {64}},
                               {"backbone.body.layer1.0.downsample.0.weight", {256, 64, 1, 1}},
                               {"backbone.body.layer1.0.downsample.1.running_mean", {256}},
                               {"backbone.body.layer3.5.conv2.weight", {256, 256, 3, 3}},
                               {"backbone.body.layer3.5.bn3.bias", {1024}},
                               {"backbone.body.layer4.0.conv1.weight", {512, 1024, 1, 1}}});

  const auto report = load_weights(model, npz);

  EXPECT_EQ(report.loaded, 7U);
  EXPECT_THAT(report.missing, ElementsAre("backbone.body.layer4.0.conv1.weight"));
  EXPECT_THAT(report.mismatched, IsEmpty());
  EXPECT_EQ(report.unused.size(), 215U - 7U);
  EXPECT_THAT(report.unused, Contains("group0/block0/conv1/W"));
  const auto stored = testing::by_name(read_npz(npz));
  const auto kernel = value_of(model, "backbone.body.layer3.5.conv2.weight");
  EXPECT_EQ(kernel[5][7][0][2].item<float>(),
            stored.at("group2/block5/conv2/W")[0][2][7][5].item<float>());
  EXPECT_TRUE(tensors_equal(value_of(model, "backbone.body.layer3.5.bn3.bias"),
                            stored.at("group2/block5/conv3/bn/beta")));
  EXPECT_TRUE(tensors_equal(value_of(model, "backbone.body.bn1.running_var"),
                            stored.at("conv0/bn/variance/EMA")));
}

TEST_F(LoadWeights, LoadsFoldedNormAsBias) {
  MILLRACE_NEEDS_DATA("weights");
  const auto npz =
      testing::data_folder() / "weights" / "R18_C1-C4_imagenet_torchvision_bnfolded_fp16.npz";
  const std::string norm = "backbone.body.layer2.0.downsample.1";
  const auto model = model_of({{norm + ".weight", {128}},
                               {norm + ".bias", {128}},
                               {norm + ".running_mean", {128}},
                               {norm + ".running_var", {128}}});
  EXPECT_EQ(load_weights(model, npz).loaded, 4U);

  const auto scale =
      value_of(model, norm + ".weight") * at::rsqrt(value_of(model, norm + ".running_var") + 1e-5);
  const auto shift =
      value_of(model, norm + ".bias") - value_of(model, norm + ".running_mean") * scale;
  EXPECT_TRUE(tensors_equal(scale, at::full({128}, 1.0)));
  const auto stored = testing::by_name(read_npz(npz));
  EXPECT_TRUE(tensors_equal(shift, stored.at("group1/block0/convshortcut/b")));
}

TEST_F(LoadWeights, LoadsFoldedNormIntoConvolutionBias) {
  MILLRACE_NEEDS_DATA("weights");
  const auto npz =
      testing::data_folder() / "weights" / "R18_C1-C4_imagenet_torchvision_bnfolded_fp16.npz";
  const std::string conv = "backbone.body.layer2.0.downsample.0";
  const auto model = model_of({{conv + ".weight", {128, 64, 1, 1}}, {conv + ".bias", {128}}});
  EXPECT_EQ(load_weights(model, npz).loaded, 2U);
  const auto stored = testing::by_name(read_npz(npz));
  EXPECT_TRUE(
      tensors_equal(value_of(model, conv + ".bias"), stored.at("group1/block0/convshortcut/b")));
}

}  // namespace
}  // namespace millrace
