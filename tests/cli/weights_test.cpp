// Weights in and results out: eval and predict with what a run leaves, and with files that do not fit.
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
  expect_error(eval(weights, {"--set", "data.classes=[\"star\", \"ring\"]"}), 1,
               "roi_heads.box_predictor.cls_score.weight: file 6 classes, model 2");
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
  expect_error(run((file / "runs").string()), 1, file.string());
}

TEST_F(Weights, PredictWithoutAnImageIsNamed) {
  auto arguments = on(data_, {"predict"});
  arguments.insert(arguments.end(), {"--weights", "w.safetensors", "--out",
                                     in_folder("seen").string(), "nosuch.jpg"});
  expect_error(trainer(arguments), 1, "nosuch.jpg");
}

}  // namespace
}  // namespace millrace::testing
