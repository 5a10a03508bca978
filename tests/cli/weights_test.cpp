// eval and predict with the weights of a run, and with unsuitable files.
#include "tests/cli/trainer.h"
#include "tests/support/data.h"
#include "tests/support/tiff.h"

namespace millrace::testing {
namespace {

class Weights : public TrainerOnData {
 protected:
  Outcome eval(const fs::path& weights, const Words& more = {}) {
    return trainer(on(data_, {"eval", "--weights", weights, "--json"}) + more);
  }

  Outcome predict(const fs::path& weights, const Words& images, const Words& overrides = {}) {
    return trainer(
        on(data_, {"predict", "--weights", weights, "--out", in_folder("seen")}, overrides) +
        images);
  }

  /// Trains for one step and returns the run's folder.
  fs::path run_of(const std::string& name, const Words& overrides) {
    const auto run = successful(trainer(on(data_, {"run", "--out", in_folder(name)},
                                           kTrainOnly + Words{"train.max_steps=1"} + overrides)));
    EXPECT_EQ(run.out, "") << "standard output is reserved for results";
    return in_folder(name) / "maskrcnn-1";
  }

  /// Trains for one step and returns the checkpoint.
  fs::path trained() { return run_of("runs", {}) / "checkpoints" / "latest"; }
};

/// Returns a safetensors file with a single F32 value.
std::string safetensors(const std::string& name, const std::string& bytes) {
  const auto header = "{\"" + name + R"(":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  return little_endian(header.size(), 8) + header + bytes;
}

TEST_F(Weights, ScoresAndPredictsWithRun) {
  const auto weights = trained();
  const auto results = in_folder("results.json"), out = in_folder("seen");
  const auto scores = successful(eval(weights, {"--out", results})).json();
  EXPECT_EQ(scores.at("bbox").at("stats").size(), 12U);
  EXPECT_EQ(scores.at("segm").at("stats").size(), 12U);
  EXPECT_EQ(read_json(results).size(), scores.at("detections"));

  const auto views = trainer(on(data_, {"eval", "--weights", weights, "--proposals"}));
  expect_error(views, 2, "model.test.aug_flip=false");
  const auto one_view = on(data_, {"eval", "--weights", weights, "--proposals", "--json"},
                           {"model.test.aug_flip=false"});
  EXPECT_TRUE(successful(trainer(one_view)).json().contains("proposals"));

  const Words images = {data_ / "val2017", fs::directory_iterator(data_ / "train2017")->path()};
  successful(predict(weights, images));
  EXPECT_EQ(read_json(out / "images.json").at("images").size(), 5U);
  EXPECT_EQ(std::count_if(fs::directory_iterator(out), fs::directory_iterator(),
                          [](const auto& e) { return e.path().extension() == ".jpg"; }),
            5);
  EXPECT_FALSE(read_json(out / "detections.json").empty());

  // Files are written even if writing to standard output fails.
  fs::remove_all(out);
  const auto unheard =
      run("/bin/sh",
          {"-c", quoted(Words{MILLRACE_TRAINER} +
                        on(data_, {"predict", "--weights", weights, "--out", out}) + images) +
                     " > /dev/full"});
  EXPECT_EQ(unheard.exit_code, 1);
  EXPECT_THAT(unheard.err, HasSubstr("standard output: No space left on device"));
  EXPECT_FALSE(read_json(out / "detections.json").empty());
}

TEST_F(Weights, KeepsDetectionsIfNamesAreConverted) {
  auto weights = trained();
  const auto expected = in_folder("expected.json");
  successful(eval(weights, {"--out", expected}));
  ASSERT_FALSE(read_json(expected).empty());
  // The configuration has the background last; torchvision and tensorpack have it first.
  for (const auto& [file, names] : std::vector<std::pair<std::string, std::string>>{
           {"a.pth", "torchvision"}, {"b.npz", "tensorpack"}, {"c.pth", "detectron2"}}) {
    const auto next = in_folder(file);
    successful(trainer({"convert", weights, next, "--names", names}));
    const auto results = in_folder(file + ".json");
    const auto scored = successful(eval(next, {"--out", results}));
    EXPECT_THAT(scored.err, HasSubstr(names));
    EXPECT_EQ(read_text(results), read_text(expected)) << names;
    weights = next;
  }
}

TEST_F(Weights, RejectsDifferentClasses) {
  const auto weights = trained();
  // A .pth does not contain class names, but the shapes differ.
  successful(trainer({"convert", weights, in_folder("m.pth")}));
  expect_error(eval(in_folder("m.pth"), {"--set", "data.classes=[\"star\", \"ring\"]"}), 1,
               "roi_heads.box_predictor.cls_score.weight");

  auto annotations = read_json(val_annotations_);
  for (auto& category : annotations.at("categories"))
    if (category.at("name") == "star") category["name"] = "sun";
  write_json(val_annotations_, annotations);
  const Words sun = {"--set", "data.classes=[\"sun\", \"ring\"]"};
  expect_error(eval(weights, sun), 2, "'sun'");
  const auto without = successful(eval(weights));
  EXPECT_THAT(without.err, ContainsRegex("warning .*sun"));
  for (auto& category : annotations.at("categories"))
    category["name"] = "my " + category.at("name").get<std::string>();
  write_json(val_annotations_, annotations);
  expect_error(eval(weights), 2, "my ");
  // With --force-weights, the configured class names replace the weights' class names one by one.
  EXPECT_EQ(eval(weights, {"--force-weights"}).exit_code, 0);
}

TEST_F(Weights, KeepsScoresForAnyClassOrder) {
  const auto weights = trained();
  const auto results = [&](const std::string& name, const std::string& classes) {
    const auto file = in_folder(name);
    const auto scored =
        successful(eval(weights, {"--out", file, "--set", "data.classes=" + classes}));
    return std::pair(read_text(file), scored.json().at("bbox").at("stats"));
  };
  const auto as_trained = results("a.json", "[]");
  ASSERT_FALSE(Json::parse(as_trained.first).empty());
  EXPECT_EQ(results("b.json", R"(["triangle", "cross", "star", "heart", "ring", "crescent"])"),
            as_trained);
  // With a subset of the classes, exactly their detections remain.
  const auto ring = Json::parse(results("c.json", R"(["ring"])").first);
  auto wanted = Json::array();
  const auto categories = read_json(val_annotations_).at("categories");
  for (const auto& one : Json::parse(as_trained.first))
    for (const auto& category : categories)
      if (category.at("name") == "ring" && category.at("id") == one.at("category_id"))
        wanted.push_back(one);
  EXPECT_EQ(ring, wanted);
}

TEST_F(Weights, RejectsDifferentModelUnlessForced) {
  const auto folder = trained();
  const auto alone = in_folder("alone.safetensors");
  successful(trainer({"convert", folder, alone}));
  for (const auto& weights : {folder, alone})
    for (const std::string key :
         {"model.pixel_std=[58.0, 57.0, 57.0]", "model.anchors.sizes=[8, 16, 32, 64, 128]",
          "model.roi.aligned=false", "model.boxes.scale_clamp=3.0", "model.backbone.norm=gn"}) {
      const auto name = key.substr(0, key.find('='));
      const auto outcome = eval(weights, {"--set", key});
      expect_error(outcome, 2, name);
      EXPECT_THAT(outcome.err, HasSubstr("--set " + name));
      EXPECT_THAT(outcome.err, HasSubstr("--force-weights"));
    }
  const auto forced =
      successful(eval(folder, {"--set", "model.pixel_std=[58, 57, 57]", "--force-weights"}));
  EXPECT_THAT(forced.err, HasSubstr("--force-weights"));
  // Detection options may change.
  successful(eval(
      folder, {"--set", "model.test.score_thresh=0.2", "--set", "model.test.detections_per_img=7",
               "--set", "data.short_side=64", "--set", "model.rpn.post_nms_top_n_test=50", "--set",
               "model.backbone.norm=bn", "--set", "model.masks=false"}));

  // If training starts from the weights, heads may differ, but not the meaning of the loaded
  // tensors.
  const auto from = [&](const Words& overrides) {
    return trainer(
        on(data_, {"run", "--out", in_folder("next")},
           overrides + kTrainOnly + Words{setting("model.weights", alone), "train.max_steps=1"}));
  };
  expect_error(from({"model.pixel_std=[58.0, 57.0, 57.0]"}), 2, "model.force_weights = true");
  EXPECT_EQ(from({"model.pixel_std=[58.0, 57.0, 57.0]", "model.force_weights=true"}).exit_code, 0);
  const auto heads =
      successful(from({"model.mask.num_convs=1", "data.classes=[\"star\", \"cross\"]"}));
  EXPECT_THAT(heads.err, HasSubstr("model.mask.num_convs"));
}

TEST_F(Weights, RejectsFrozenPartsWithoutWeights) {
  const auto run = trained().parent_path().parent_path();
  const auto from = [&](const fs::path& weights, const Words& settings) {
    return trainer(
        on(data_, {"run", "--out", in_folder("next")},
           kTrainOnly + Words{setting("model.weights", weights), "train.max_steps=1"} + settings));
  };
  const Words frozen_heads = {"optimizer.groups=[{match=\"roi_heads.*\", frozen=true}]"};
  const auto whole = successful(from(run, frozen_heads + Words{"model.backbone.freeze_at=5"}));
  EXPECT_THAT(whole.err, AllOf(HasSubstr("168 of 168"), HasSubstr(run.string())));
  const auto record = read_json(in_folder("next") / "maskrcnn-1" / "record.json");
  EXPECT_TRUE(record.at("starts").at(0).at("weights").at("digest").is_string());

  const auto other_classes = frozen_heads + Words{"data.classes=[\"star\", \"ring\"]"};
  successful(trainer({"convert", run, in_folder("m.pth")}));
  expect_error(from(in_folder("m.pth"), other_classes), 1, "roi_heads.box_predictor.cls_score");
  successful(from(in_folder("m.pth"), other_classes + Words{"model.force_weights=true"}));
  const Words deep = {"model.backbone.deep_stem=true"};
  expect_error(from(run, deep + Words{"model.backbone.freeze_at=1"}), 1, "backbone.body.conv1");
  successful(from(run, deep));
}

TEST_F(Weights, RejectsFrozenStagesWithoutWeights) {
  MILLRACE_NEEDS_DATA("weights");
  const auto from = [&](const char* file, const Words& settings) {
    return trainer(on(data_, {"run", "--out", in_folder("next")},
                      kTrainOnly +
                          Words{setting("model.weights", data_folder() / "weights" / file),
                                "model.backbone.width=64", "train.max_steps=1"} +
                          settings));
  };
  const auto* resnet18 = "R18_C1-C4_imagenet_torchvision_bnfolded_fp16.npz";
  const auto* resnet50 = "R50_C1-C4_imagenet_msra_fp16.npz";
  expect_error(from(resnet18, {"model.backbone.freeze_at=5"}), 1, "backbone.body.layer4.0.conv1");
  expect_error(from(resnet50, {"model.backbone.freeze_at=2"}), 1, "backbone.body.layer1.0");
  // The norms are folded into the convolutions: a model without norms gets all tensors except C5.
  const auto folded =
      successful(from(resnet18, {"model.backbone.freeze_at=4", "model.backbone.norm=none"}));
  EXPECT_THAT(folded.err, Not(ContainsRegex("warning .*backbone.body.(conv1|layer[123])")));
  // Missing statistics are set to constants, not to random values.
  const auto frozen_bn = successful(from(resnet18, {"model.backbone.norm=frozen_bn"}));
  EXPECT_THAT(frozen_bn.err, HasSubstr("backbone.body.layer4.0.bn1.weight"));
}

TEST_F(Weights, RejectsChangedBytes) {
  const auto folder = trained();
  const auto file = folder / "model.safetensors";
  const auto alone = in_folder("alone.safetensors");
  auto bytes = read_text(file);
  bytes[bytes.size() / 2] ^= 1;
  fs::remove(file);
  write_text(file, bytes);
  write_text(alone, bytes);
  for (const auto& weights : {folder, file, alone}) {
    expect_error(eval(weights), 1, weights.string());
    expect_error(eval(weights, {"--force-weights"}), 1, weights.string());
  }
  expect_error(predict(alone, {data_ / "val2017"}), 1, alone.string());
}

TEST_F(Weights, RejectsNonFiniteWeightsUnlessForced) {
  const auto file = in_folder("nan.safetensors"), out = in_folder("o.pth");
  write_text(file, safetensors("backbone.fpn.inner_blocks.0.0.bias", {"\0\0\xc0\x7f", 4}));
  expect_error(trainer({"convert", file, out}), 1, "'backbone.fpn.inner_blocks.0.0.bias'");
  EXPECT_FALSE(fs::exists(out));
  successful(trainer({"convert", file, out, "--force-weights"}));
}

TEST_F(Weights, PredictsWithoutDataSet) {
  const auto weights = trained();
  const auto categories = read_json(val_annotations_).at("categories");
  const auto photos = in_folder("photos");
  fs::rename(data_ / "val2017", photos);
  fs::remove_all(data_);
  successful(predict(weights, {photos}));
  EXPECT_FALSE(fs::exists(data_));
  const auto key = read_json(in_folder("seen") / "images.json");
  ASSERT_EQ(key.at("categories").size(), 6U);
  for (const auto& one : key.at("categories"))
    EXPECT_TRUE(std::ranges::any_of(categories, [&](const auto& other) {
      return other.at("id") == one.at("id") && other.at("name") == one.at("name");
    })) << one;
  expect_error(predict(weights, {photos}, {"data.classes=[\"dog\"]"}), 2, "'dog'");
}

TEST_F(Weights, ScoresWithoutConfiguration) {
  const auto weights = trained();
  const auto run = in_folder("runs") / "maskrcnn-1", alone = in_folder("alone.safetensors");
  successful(trainer({"convert", weights, alone}));

  // Produces the same bytes as with the configuration used for training.
  const auto expected = in_folder("expected.json"), found = in_folder("found.json");
  const auto scores = successful(eval(weights, {"--out", expected})).json();
  ASSERT_FALSE(read_json(expected).empty());
  const auto seen = in_folder("seen"), seen_alone = in_folder("seen_alone");
  successful(predict(weights, {data_ / "val2017"}));
  for (const auto& model : {alone, fs::path(weights), run}) {
    const auto again =
        successful(trainer({"eval", model, "--data", data_, "--json", "--out", found}));
    EXPECT_EQ(again.json().at("bbox"), scores.at("bbox")) << model;
    EXPECT_EQ(read_text(found), read_text(expected)) << model;
    fs::remove_all(seen_alone);
    successful(trainer({"predict", model, data_ / "val2017", "--out", seen_alone}));
    for (const auto& file : fs::directory_iterator(seen))
      EXPECT_EQ(read_text(seen_alone / file.path().filename()), read_text(file)) << file;
  }
  // A run records its evaluation data, so this works in any folder.
  const auto of_run = successful(trainer({"eval", run, "--json"}));
  EXPECT_EQ(of_run.json().at("bbox"), scores.at("bbox"));

  EXPECT_EQ(of_run.json().at("limit").at("max_detections"), 100);
  const auto wider = run_of("wider", {"callbacks.evaluate.max_detections=200"});
  const auto counted = [](const Outcome& scored) {
    return successful(scored).json().at("limit").at("max_detections");
  };
  EXPECT_EQ(counted(trainer({"eval", wider, "--json"})), 200);
  EXPECT_EQ(counted(trainer({"eval", wider, "--data", data_, "--json"})), 200);
  EXPECT_EQ(counted(trainer({"eval", wider, "--max-dets", "150", "--json"})), 150);
  EXPECT_EQ(counted(eval(weights, {"--set", "callbacks.evaluate.max_detections=300"})), 300);

  // Detection options may change, but not options that the weights depend on.
  successful(trainer({"predict", alone, data_ / "val2017", "--out", seen_alone, "--set",
                      "model.test.score_thresh=0.9"}));
  expect_error(trainer({"predict", alone, data_ / "val2017", "--out", seen_alone, "--set",
                        "model.roi.aligned=false"}),
               2, "--set model.roi.aligned");

  const auto shown = successful(trainer({"config", alone}));
  for (const auto* line : {"# ", "maskrcnn", "data/train2017", "[model]", "test_short_side = 176"})
    EXPECT_THAT(shown.out, HasSubstr(line));
  EXPECT_THAT(shown.out, Not(HasSubstr("reduced_decoding")));
}

TEST_F(Weights, RejectsModelsWithoutCard) {
  const auto weights = trained();
  const auto pth = in_folder("m.pth");
  successful(trainer({"convert", weights, pth}));
  expect_error(trainer({"eval", pth, "--data", data_}), 2, pth.string());
  expect_error(trainer({"predict", pth, data_ / "val2017", "--out", in_folder("o")}), 2,
               pth.string());
  const auto alone = in_folder("alone.safetensors");
  successful(trainer({"convert", weights, alone}));
  expect_error(trainer({"eval", alone}), 2, "--data");
  expect_error(trainer({"eval", weights, "--data", in_folder("nosuch")}), 2,
               in_folder("nosuch").string());
  expect_error(trainer({"eval", weights, "--data", data_, "--weights", pth}), 2, "--weights");
  expect_error(trainer({"eval", "configs/maskrcnn.toml"}), 2, "--weights");
  expect_error(trainer({"eval", data_, "--data", data_}), 1, data_.string());
  expect_error(trainer({"eval", in_folder("nosuch.safetensors"), "--data", data_}), 2,
               "nosuch.safetensors");
}

TEST_F(Weights, PredictsDespiteBrokenImages) {
  const auto weights = trained();
  const auto photos = in_folder("photos");
  fs::rename(data_ / "val2017", photos);
  write_text(photos / "000-broken.jpg", "no picture");
  write_text(photos / "001-narrow.tif", tiff_of(std::string(3 * 3000 * 9, '\x80'), 3000, 9));
  write_text(photos / "002-thread.tif", tiff_of(std::string(3 * 20000, '\x80'), 20000, 1));
  const auto good = std::distance(fs::directory_iterator(photos), fs::directory_iterator()) - 1;
  const auto out = in_folder("seen");
  // A folder already has the name of one of the images to write.
  fs::create_directories(out / "001-narrow.jpg" / "in the way");
  const auto outcome = predict(weights, {photos});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("000-broken.jpg"));
  EXPECT_THAT(outcome.err, HasSubstr("2 of " + std::to_string(good + 1) + " images"));
  EXPECT_THAT(outcome.err, HasSubstr("001-narrow.tif"));
  EXPECT_EQ(std::ranges::count(outcome.out, '\n'), good - 1);
  EXPECT_EQ(read_json(out / "images.json").at("images").size(), static_cast<std::size_t>(good));
  EXPECT_TRUE(fs::exists(out / "002-thread.jpg"));
  EXPECT_TRUE(read_json(out / "detections.json").is_array());
}

TEST_F(Weights, NamesUnsuitableFiles) {
  const auto other = in_folder("other.safetensors"), picture = in_folder("model.png"),
             renamed = in_folder("model.safetensors");
  write_text(other, safetensors("lm_head.weight", "zero"));
  for (const auto& file : {picture, renamed}) write_text(file, "\x89PNG\r\n\x1a\n");
  for (const auto& file : {other, picture, renamed, in_folder("nosuch.safetensors")})
    expect_error(eval(file), 1, file.string());
  EXPECT_THAT(eval(other).err, HasSubstr("lm_head.weight"));
  expect_error(predict("w.safetensors", {"nosuch.jpg"}), 1, "nosuch.jpg");
}

}  // namespace
}  // namespace millrace::testing
