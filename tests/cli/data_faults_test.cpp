// Data that is missing or broken: one clear message, or a counted warning; never a crash.
#include "tests/cli/trainer.h"

namespace millrace::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// A small data set that a test breaks, and the flow run over it.
class DataFaults : public Trainer {
 protected:
  fs::path data_ = make_data();
  fs::path annotations_ = data_ / "annotations" / "instances_train2017.json";

  Outcome flow(const std::vector<std::string>& overrides = {}) {
    auto arguments = on(data_, {"bench", "dataflow"}, overrides);
    arguments.insert(arguments.end(), {"--batches", "6", "--json"});
    return trainer(arguments);
  }

  /// Changes the annotations of the training split.
  template <class F>
  void edit(F change) {
    auto json = read_json(annotations_);
    change(json);
    write_json(annotations_, json);
  }

  fs::path first_image() {
    return data_ / "train2017" / read_json(annotations_)["images"][0]["file_name"];
  }
};

TEST_F(DataFaults, AMissingFolderIsNamed) {
  fs::remove_all(data_);
  auto arguments = on(data_, {"bench", "dataflow"});
  arguments[2] = "configs/coco/mask_rcnn_R50_FPN_1x.toml";  // makes no sample
  const auto outcome = trainer(arguments);
  expect_error(outcome, 2, data_.string());
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
}

TEST_F(DataFaults, EmptyAnnotationsAreNamed) {
  write_text(annotations_, "");
  expect_error(flow(), 1, annotations_.string());
}

TEST_F(DataFaults, TruncatedAnnotationsAreNamed) {
  const auto text = read_text(annotations_);
  write_text(annotations_, text.substr(0, text.size() * 2 / 3));
  expect_error(flow(), 1, annotations_.string());
}

TEST_F(DataFaults, AnUnknownCategoryIsNamed) {
  expect_error(flow({"data.classes=[\"nosuch\"]"}), 2, "nosuch");
  expect_error(flow({"data.classes=[\"stra\"]"}), 2, "did you mean 'star'?");
}

TEST_F(DataFaults, ATruncatedImageIsSkippedAndCounted) {
  const auto image = first_image();
  fs::resize_file(image, fs::file_size(image) / 2);
  const auto skipping = flow({"data.max_skipped=0.5"});
  ASSERT_EQ(skipping.exit_code, 0) << skipping.err;
  EXPECT_GT(skipping.json().at("skipped").get<int>(), 0);
  EXPECT_THAT(skipping.err, HasSubstr(image.filename().string()));
  expect_error(flow({"data.on_error=\"fail\""}), 1, image.filename().string());
}

TEST_F(DataFaults, ABoxWithoutAreaIsLeftOutAndCounted) {
  edit([](Json& json) { json["annotations"][0]["bbox"][2] = 0; });
  const auto outcome = flow();
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("1 object"));
}

TEST_F(DataFaults, AnObjectThatBreaksTheRulesIsLeftOutAndCounted) {
  edit([](Json& json) {
    json["annotations"][1]["id"] = 4711;
    json["annotations"][1]["segmentation"] = {{1, 2, 3, 4}};
  });
  const auto outcome = flow();
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr(annotations_.string()),
                    HasSubstr("1 annotation cannot be used: annotation 4711, byte "),
                    HasSubstr("polygon 0 has 4 numbers; three or more points as x y are needed")));
  expect_error(flow({"data.on_error=\"fail\""}), 1, "polygon 0 has 4 numbers");
}

TEST_F(DataFaults, EvalSaysHowManyImagesItLeftOut) {
  const auto runs = in_folder("runs");
  const auto trained =
      trainer(on(data_, {"run", "--output", runs.string()},
                 {"train.max_steps=1", "callbacks.evaluate.enabled=false",
                  "callbacks.pictures.enabled=false", "callbacks.checkpoint.every=\"1 steps\""}));
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const auto eval = [&](const std::vector<std::string>& more) {
    auto words = on(data_, {"eval"}, {"data.max_skipped=0.5"});
    words.insert(words.end(), {"--weights", (runs / "maskrcnn-1/checkpoints/latest").string()});
    words.insert(words.end(), more.begin(), more.end());
    return trainer(words);
  };
  EXPECT_EQ(eval({"--json"}).json().at("left_out"), 0);
  const auto json = read_json(data_ / "annotations" / "instances_val2017.json");
  const auto image = data_ / "val2017" / json["images"][0]["file_name"];
  fs::resize_file(image, fs::file_size(image) / 2);
  const auto figures = eval({"--json"}).json();
  EXPECT_EQ(figures.at("left_out"), 1);
  EXPECT_EQ(figures.at("images"), 3);
  EXPECT_THAT(eval({}).out, HasSubstr("1 image left out, scored as without detections"));
}

TEST_F(DataFaults, TwoCategoriesOfOneNameAreAFaultOfTheFile) {
  edit([](Json& json) { json["categories"][1]["name"] = json["categories"][0]["name"]; });
  const auto outcome = flow();
  expect_error(outcome, 1, annotations_.string() + ": categories 1 and 2 are both named");
}

TEST_F(DataFaults, AnImageWithoutObjectsIsNoFault) {
  edit([](Json& json) {
    const auto id = json["images"][0]["id"];
    Json kept = Json::array();
    for (const auto& object : json["annotations"])
      if (object["image_id"] != id) kept.push_back(object);
    json["annotations"] = kept;
  });
  EXPECT_EQ(flow().exit_code, 0);
  EXPECT_EQ(flow({"data.filter_empty=false"}).exit_code, 0);
}

}  // namespace
}  // namespace millrace::testing
