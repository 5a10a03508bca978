// Missing or broken data gives one clear message or a counted warning, never a crash.
#include "tests/cli/trainer.h"

namespace millrace::testing {
namespace {

class DataFaults : public TrainerOnData {
 protected:
  Outcome flow(const Words& overrides = {}) {
    return trainer(on(data_, {"bench", "dataflow", "--batches", "6", "--json"}, overrides));
  }
};

TEST_F(DataFaults, NamesMissingFolder) {
  fs::remove_all(data_);
  auto arguments = on(data_, {"bench", "dataflow"});
  arguments[2] = "configs/coco/mask_rcnn_R50_FPN_1x.toml";  // without the sample data set
  const auto outcome = trainer(arguments);
  expect_error(outcome, 2, data_.string());
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
}

TEST_F(DataFaults, NamesEmptyOrTruncatedAnnotations) {
  const auto text = read_text(annotations_);
  for (const std::size_t size : {std::size_t{0}, text.size() * 2 / 3}) {
    write_text(annotations_, text.substr(0, size));
    expect_error(flow(), 1, annotations_.string());
  }
}

TEST_F(DataFaults, NamesUnknownCategory) {
  expect_error(flow({"data.classes=[\"nosuch\"]"}), 2, "nosuch");
  expect_error(flow({"data.classes=[\"stra\"]"}), 2, "'star'");
}

TEST_F(DataFaults, SkipsAndCountsTruncatedImage) {
  const auto image = first_image();
  fs::resize_file(image, fs::file_size(image) / 2);
  const auto skipping = successful(flow({"data.max_skipped=0.5"}));
  EXPECT_GT(skipping.json().at("skipped").get<int>(), 0);
  EXPECT_THAT(skipping.err, HasSubstr(image.filename().string()));
  expect_error(flow({"data.on_error=\"fail\""}), 1, image.filename().string());
}

TEST_F(DataFaults, CountsBoxWithoutArea) {
  edit(annotations_, [](Json& json) { json["annotations"][0]["bbox"][2] = 0; });
  const auto outcome = successful(flow());
  EXPECT_THAT(outcome.err, HasSubstr("1 object"));
}

TEST_F(DataFaults, CountsInvalidObject) {
  edit(annotations_, [](Json& json) {
    json["annotations"][1]["id"] = 4711;
    json["annotations"][1]["segmentation"] = {{1, 2, 3, 4}};
  });
  const auto outcome = successful(flow());
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr(annotations_.string()), HasSubstr("4711"), HasSubstr("polygon 0")));
  expect_error(flow({"data.on_error=\"fail\""}), 1, "polygon 0");
}

TEST_F(DataFaults, ReportsImagesLeftOutByEval) {
  const auto runs = in_folder("runs");
  successful(trainer(on(data_, {"run", "--out", runs}, kTrainOnly + Words{"train.max_steps=1"})));
  const auto eval = [&](const Words& more) {
    return trainer(on(data_, {"eval", "--weights", runs / "maskrcnn-1/checkpoints/latest"},
                      {"data.max_skipped=0.5"}) +
                   more);
  };
  EXPECT_EQ(eval({"--json"}).json().at("left_out"), 0);
  const auto json = read_json(val_annotations_);
  const auto image = data_ / "val2017" / json["images"][0]["file_name"];
  fs::resize_file(image, fs::file_size(image) / 2);
  const auto figures = eval({"--json"}).json();
  EXPECT_EQ(figures.at("left_out"), 1);
  EXPECT_EQ(figures.at("images"), 3);
  EXPECT_THAT(eval({}).out, HasSubstr("; 1 image "));
  EXPECT_EQ(eval({"--json", "--set", "data.strict_decoding=false"}).json().at("left_out"), 0);
  const auto bombs = eval({"--set", "data.max_pixels=100"});
  EXPECT_NE(bombs.exit_code, 0);
  EXPECT_THAT(bombs.err, HasSubstr("data.max_pixels"));
}

TEST_F(DataFaults, RejectsTwoCategoriesWithSameName) {
  edit(annotations_,
       [](Json& json) { json["categories"][1]["name"] = json["categories"][0]["name"]; });
  const auto outcome = flow();
  expect_error(outcome, 1, annotations_.string());
  EXPECT_THAT(outcome.err,
              HasSubstr(read_json(annotations_)["categories"][0]["name"].get<std::string>()));
}

TEST_F(DataFaults, AcceptsImageWithoutObjects) {
  edit(annotations_, [](Json& json) {
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
