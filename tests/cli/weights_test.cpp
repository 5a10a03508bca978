// Weights in and results out: eval and predict with what a run leaves, and with files that do not
// fit.
#include "tests/cli/trainer.h"

namespace millrace::testing {
namespace {

using ::testing::HasSubstr;

class Weights : public Trainer {
 protected:
  fs::path data_ = make_data();

  Outcome eval(const fs::path& weights, const std::vector<std::string>& more = {}) {
    auto arguments = on(data_, {"eval"});
    arguments.insert(arguments.end(), {"--weights", weights.string(), "--json"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return trainer(arguments);
  }

  Outcome run(const std::string& output) {
    auto arguments = on(data_, {"run"},
                        {"train.max_steps=1", "callbacks.evaluate.enabled=false",
                         "callbacks.pictures.enabled=false"});
    arguments.insert(arguments.end(), {"--output", output});
    return trainer(arguments);
  }
};

/// A safetensors file with one tensor that no detector has.
void write_foreign_safetensors(const fs::path& file) {
  const std::string header =
      R"({"lm_head.weight":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(header.size());  // little-endian
  write_text(file, bytes + header + std::string(4, '\0'));
}

TEST_F(Weights, OfARunServeEvalAndPredict) {
  const auto trained = run(in_folder("runs").string());
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_EQ(trained.out, "") << "standard output belongs to results";
  const auto weights = in_folder("runs") / "maskrcnn-1" / "checkpoints" / "latest";

  const auto results = in_folder("results.json");
  const auto scored = eval(weights, {"--out", results.string()});
  ASSERT_EQ(scored.exit_code, 0) << scored.err;
  EXPECT_EQ(scored.json().at("bbox").at("stats").size(), 12U);
  EXPECT_EQ(scored.json().at("segm").at("stats").size(), 12U);
  EXPECT_EQ(read_json(results).size(), scored.json().at("detections"));

  const auto out = in_folder("seen");
  auto arguments = on(data_, {"predict"});
  const auto image = *fs::directory_iterator(data_ / "train2017");
  arguments.insert(arguments.end(), {"--weights", weights.string(), "--out", out.string(),
                                     (data_ / "val2017").string(), image.path().string()});
  const auto predicted = trainer(arguments);
  ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
  EXPECT_EQ(read_json(out / "images.json").at("images").size(), 5U);
  EXPECT_EQ(std::count_if(fs::directory_iterator(out), fs::directory_iterator(),
                          [](const auto& e) { return e.path().extension() == ".jpg"; }),
            5);
  EXPECT_FALSE(read_json(out / "detections.json").empty());

  // With a standard output that takes nothing, the files are written all the same.
  fs::remove_all(out);
  arguments.insert(arguments.begin(), MILLRACE_TRAINER);
  std::string line;
  for (const auto& word : arguments) line += " '" + word + "'";
  const auto unheard = Trainer::run("/bin/sh", {"-c", line + " > /dev/full"});
  EXPECT_EQ(unheard.exit_code, 1);
  EXPECT_THAT(unheard.err, HasSubstr("standard output cannot be written: No space left on device"));
  EXPECT_FALSE(read_json(out / "detections.json").empty());
}

TEST_F(Weights, UnderOtherNamesAndOrdersOfClassesDetectTheSame) {
  ASSERT_EQ(run(in_folder("runs").string()).exit_code, 0);
  auto weights = in_folder("runs") / "maskrcnn-1" / "checkpoints" / "latest";
  const auto expected = in_folder("expected.json");
  ASSERT_EQ(eval(weights, {"--out", expected.string()}).exit_code, 0);
  ASSERT_FALSE(read_json(expected).empty());
  // The configuration has the background last; torchvision and tensorpack have it first.
  for (const auto& [file, names] : std::vector<std::pair<std::string, std::string>>{
           {"a.pth", "torchvision"}, {"b.npz", "tensorpack"}, {"c.pth", "detectron2"}}) {
    const auto next = in_folder(file);
    const auto done = trainer({"convert", weights.string(), next.string(), "--names", names});
    ASSERT_EQ(done.exit_code, 0) << done.err;
    const auto results = in_folder(file + ".json");
    const auto scored = eval(next, {"--out", results.string()});
    ASSERT_EQ(scored.exit_code, 0) << scored.err;
    EXPECT_THAT(scored.err, HasSubstr("(names of " + names + ")"));
    EXPECT_EQ(read_text(results), read_text(expected)) << names;
    weights = next;
  }
}

TEST_F(Weights, ForOtherClassesAreRefused) {
  ASSERT_EQ(run(in_folder("runs").string()).exit_code, 0);
  const auto weights = in_folder("runs") / "maskrcnn-1" / "checkpoints" / "latest";
  // A .pth does not say which classes it has: the shapes do.
  ASSERT_EQ(trainer({"convert", weights.string(), in_folder("m.pth").string()}).exit_code, 0);
  expect_error(eval(in_folder("m.pth"), {"--set", "data.classes=[\"star\", \"ring\"]"}), 1,
               "roi_heads.box_predictor.cls_score.weight: file 6 classes, model 2");

  auto annotations = read_json(data_ / "annotations" / "instances_val2017.json");
  for (auto& category : annotations.at("categories"))
    if (category.at("name") == "star") category["name"] = "sun";
  write_json(data_ / "annotations" / "instances_val2017.json", annotations);
  const std::vector<std::string> sun = {"--set", "data.classes=[\"sun\", \"ring\"]"};
  expect_error(eval(weights, sun), 2, "data.classes: the weights have no class 'sun'");
  const auto without = eval(weights);
  EXPECT_EQ(without.exit_code, 0) << without.err;
  EXPECT_THAT(without.err, HasSubstr("an annotated category that the weights do not know"));
  for (auto& category : annotations.at("categories"))
    category["name"] = "my " + category.at("name").get<std::string>();
  write_json(data_ / "annotations" / "instances_val2017.json", annotations);
  expect_error(eval(weights), 2, "none of the annotated categories (my");
  // Forced, the names stand for the weights' classes one by one.
  EXPECT_EQ(eval(weights, {"--force-weights"}).exit_code, 0);
}

TEST_F(Weights, ScoreTheSameInAnyOrderOfClassesAndForSomeOfThem) {
  ASSERT_EQ(run(in_folder("runs").string()).exit_code, 0);
  const auto weights = in_folder("runs") / "maskrcnn-1" / "checkpoints" / "latest";
  const auto results = [&](const std::string& name, const std::string& classes) {
    const auto file = in_folder(name);
    const auto scored = eval(weights, {"--out", file.string(), "--set", "data.classes=" + classes});
    EXPECT_EQ(scored.exit_code, 0) << scored.err;
    return std::pair(read_text(file), scored.json().at("bbox").at("stats"));
  };
  const auto as_trained = results("a.json", "[]");
  ASSERT_FALSE(Json::parse(as_trained.first).empty());
  EXPECT_EQ(results("b.json", R"(["triangle", "cross", "star", "heart", "ring", "crescent"])"),
            as_trained);
  // With some of the classes, their detections stay and no others.
  const auto ring = Json::parse(results("c.json", R"(["ring"])").first);
  auto wanted = Json::array();
  const auto categories =
      read_json(data_ / "annotations" / "instances_val2017.json").at("categories");
  for (const auto& one : Json::parse(as_trained.first))
    for (const auto& category : categories)
      if (category.at("name") == "ring" && category.at("id") == one.at("category_id"))
        wanted.push_back(one);
  EXPECT_EQ(ring, wanted);
}

TEST_F(Weights, InAnotherModelThanTheirsAreRefusedUnlessAskedFor) {
  ASSERT_EQ(run(in_folder("runs").string()).exit_code, 0);
  const auto folder = in_folder("runs") / "maskrcnn-1" / "checkpoints" / "latest";
  const auto alone = in_folder("alone.safetensors");
  ASSERT_EQ(trainer({"convert", folder.string(), alone.string()}).exit_code, 0);
  for (const auto& weights : {folder, alone})
    for (const std::string key :
         {"model.pixel_std=[58.0, 57.0, 57.0]", "model.anchors.sizes=[8, 16, 32, 64, 128]",
          "model.roi.aligned=false", "model.boxes.scale_clamp=3.0", "model.backbone.norm=gn"}) {
      const auto name = key.substr(0, key.find('='));
      const auto outcome = eval(weights, {"--set", key});
      expect_error(outcome, 2, name + ": trained with ");
      EXPECT_THAT(outcome.err, HasSubstr("(--set " + name + ")"));
      EXPECT_THAT(outcome.err, HasSubstr("--force-weights"));
    }
  const auto forced = eval(folder, {"--set", "model.pixel_std=[58, 57, 57]", "--force-weights"});
  EXPECT_EQ(forced.exit_code, 0) << forced.err;
  EXPECT_THAT(forced.err, HasSubstr("used all the same (--force-weights)"));
  // How one detects is free.
  const auto free = eval(
      folder, {"--set", "model.test.score_thresh=0.2", "--set", "model.test.detections_per_img=7",
               "--set", "data.short_side=64", "--set", "model.rpn.post_nms_top_n_test=50", "--set",
               "model.backbone.norm=bn", "--set", "model.masks=false"});
  EXPECT_EQ(free.exit_code, 0) << free.err;

  // Training from them: heads may be others, what the kept tensors mean may not.
  const auto from = [&](const std::vector<std::string>& overrides) {
    auto all = overrides;
    all.insert(all.end(), {"model.weights=\"" + alone.string() + "\"", "train.max_steps=1",
                           "callbacks.evaluate.enabled=false", "callbacks.pictures.enabled=false"});
    auto arguments = on(data_, {"run", "--output", in_folder("next").string()}, all);
    return trainer(arguments);
  };
  expect_error(from({"model.pixel_std=[58.0, 57.0, 57.0]"}), 2, "model.force_weights = true");
  EXPECT_EQ(from({"model.pixel_std=[58.0, 57.0, 57.0]", "model.force_weights=true"}).exit_code, 0);
  const auto heads = from({"model.mask.num_convs=1", "data.classes=[\"star\", \"cross\"]"});
  EXPECT_EQ(heads.exit_code, 0) << heads.err;
  EXPECT_THAT(heads.err, HasSubstr("model.mask.num_convs: trained with 2, here 1"));
  EXPECT_THAT(heads.err, HasSubstr("rows of heads were taken by the names of their classes"));
}

TEST_F(Weights, OfWhichAByteHasChangedAreRefused) {
  ASSERT_EQ(run(in_folder("runs").string()).exit_code, 0);
  const auto folder = in_folder("runs") / "maskrcnn-1" / "checkpoints" / "latest";
  const auto file = folder / "model.safetensors";
  const auto alone = in_folder("alone.safetensors");
  auto bytes = read_text(file);
  bytes[bytes.size() / 2] ^= 1;
  fs::remove(file);
  write_text(file, bytes);
  write_text(alone, bytes);
  for (const auto& weights : {folder, file, alone}) {
    expect_error(eval(weights), 1, "its bytes have changed since it was written");
    expect_error(eval(weights, {"--force-weights"}), 1, weights.string());
  }
  auto arguments = on(data_, {"predict"});
  arguments.insert(arguments.end(), {"--weights", alone.string(), "--out",
                                     in_folder("seen").string(), (data_ / "val2017").string()});
  expect_error(trainer(arguments), 1, alone.string());
}

TEST_F(Weights, ThatAreNotFiniteAreRefusedUnlessAskedFor) {
  const std::string header =
      R"({"backbone.fpn.inner_blocks.0.0.bias":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(header.size());
  const auto file = in_folder("nan.safetensors");
  write_text(file, bytes + header + std::string("\0\0\xc0\x7f", 4));
  const std::vector<std::string> convert = {"convert", file.string(), in_folder("o.pth").string()};
  expect_error(trainer(convert), 1,
               "'backbone.fpn.inner_blocks.0.0.bias': 1 of its 1 values are NaN or infinite");
  EXPECT_FALSE(fs::exists(in_folder("o.pth")));
  auto forced = convert;
  forced.push_back("--force-weights");
  EXPECT_EQ(trainer(forced).exit_code, 0);
}

TEST_F(Weights, PredictTakesClassesFromThemAndNeedsNoData) {
  ASSERT_EQ(run(in_folder("runs").string()).exit_code, 0);
  const auto weights = in_folder("runs") / "maskrcnn-1" / "checkpoints" / "latest";
  const auto categories =
      read_json(data_ / "annotations" / "instances_val2017.json").at("categories");
  const auto photos = in_folder("photos");
  fs::rename(data_ / "val2017", photos);
  const auto predict = [&](const std::string& out, const std::vector<std::string>& overrides) {
    auto arguments = on(in_folder("nowhere"), {"predict"}, overrides);
    arguments.insert(arguments.end(), {"--weights", weights.string(), "--out",
                                       in_folder(out).string(), photos.string()});
    return trainer(arguments);
  };
  const auto all = predict("seen", {});
  ASSERT_EQ(all.exit_code, 0) << all.err;
  EXPECT_FALSE(fs::exists(in_folder("nowhere")));
  const auto key = read_json(in_folder("seen") / "images.json");
  ASSERT_EQ(key.at("categories").size(), 6U);
  for (const auto& one : key.at("categories"))
    EXPECT_TRUE(std::ranges::any_of(categories, [&](const auto& other) {
      return other.at("id") == one.at("id") && other.at("name") == one.at("name");
    })) << one;
  expect_error(predict("other", {"data.classes=[\"dog\"]"}), 2, "no category 'dog'");
}

TEST_F(Weights, PredictLosesNoImageForAnother) {
  ASSERT_EQ(run(in_folder("runs").string()).exit_code, 0);
  const auto weights = in_folder("runs") / "maskrcnn-1" / "checkpoints" / "latest";
  const auto photos = in_folder("photos");
  fs::rename(data_ / "val2017", photos);
  write_text(photos / "000-broken.jpg", "no picture");
  write_text(photos / "001-narrow.ppm", "P6 3000 9 255\n" + std::string(3000 * 9 * 3, '\x80'));
  write_text(photos / "002-thread.ppm", "P6 20000 1 255\n" + std::string(20000 * 3, '\x80'));
  const auto good = std::distance(fs::directory_iterator(photos), fs::directory_iterator()) - 1;
  const auto out = in_folder("seen");
  // A folder stands where the picture of one of them should go.
  fs::create_directories(out / "001-narrow.jpg" / "in the way");
  auto arguments = on(data_, {"predict"});
  arguments.insert(arguments.end(),
                   {"--weights", weights.string(), "--out", out.string(), photos.string()});
  const auto outcome = trainer(arguments);
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("000-broken.jpg"));
  EXPECT_THAT(outcome.err, HasSubstr("2 of " + std::to_string(good + 1) + " images failed: "));
  EXPECT_THAT(outcome.err, HasSubstr("001-narrow.ppm"));
  EXPECT_EQ(std::ranges::count(outcome.out, '\n'), good - 1);
  EXPECT_EQ(read_json(out / "images.json").at("images").size(), static_cast<std::size_t>(good));
  EXPECT_TRUE(fs::exists(out / "002-thread.jpg"));
  EXPECT_TRUE(read_json(out / "detections.json").is_array());
}

TEST_F(Weights, ThatAreAPictureAreRefused) {
  const auto file = in_folder("model.png");
  write_text(file, "\x89PNG\r\n\x1a\n");
  expect_error(eval(file), 1, file.string());
  const auto renamed = in_folder("model.safetensors");
  fs::copy_file(file, renamed);
  expect_error(eval(renamed), 1, renamed.string());
}

TEST_F(Weights, OfAnotherModelAreRefused) {
  const auto file = in_folder("other.safetensors");
  write_foreign_safetensors(file);
  const auto outcome = eval(file);
  expect_error(outcome, 1, file.string());
  EXPECT_THAT(outcome.err, HasSubstr("lm_head.weight"));
}

TEST_F(Weights, ThatAreNotThereAreNamed) {
  expect_error(eval("nosuch.safetensors"), 1, "nosuch.safetensors");
}

TEST_F(Weights, AnOutputThatCannotBeWrittenIsNamed) {
  const auto file = in_folder("file");
  write_text(file, "");
  expect_error(run((file / "runs").string()), 2, file.string());
}

TEST_F(Weights, PredictWithoutAnImageIsNamed) {
  auto arguments = on(data_, {"predict"});
  arguments.insert(arguments.end(), {"--weights", "w.safetensors", "--out",
                                     in_folder("seen").string(), "nosuch.jpg"});
  expect_error(trainer(arguments), 1, "nosuch.jpg");
}

}  // namespace
}  // namespace millrace::testing
