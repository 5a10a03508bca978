// trainer init: makes a configuration that trains from a folder of photos and labels.
#include <algorithm>
#include <map>
#include <set>

#include "tests/cli/trainer.h"

namespace millrace::testing {
namespace {

using ::testing::Each;
using ::testing::Ge;
using ::testing::SizeIs;

/// Returns the bytes of all files of a folder and the targets of all links, by path.
std::map<std::string, std::string> contents(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const auto name = entry.path().lexically_relative(folder).string();
    if (entry.is_symlink())
      files[name] = fs::read_symlink(entry.path()).string();
    else if (entry.is_regular_file())
      files[name] = read_text(entry.path());
  }
  return files;
}

/// Returns the output with line breaks and repeated spaces replaced by single spaces.
std::string words_of(const Outcome& outcome) {
  std::string words = outcome.out;
  std::ranges::replace(words, '\n', ' ');
  for (auto at = words.find("  "); at != std::string::npos; at = words.find("  "))
    words.erase(at, 1);
  return words;
}

class InitTest : public TrainerOnData {
 protected:
  InitTest() {
    fs::remove(val_annotations_);
    fs::remove_all(data_ / "val2017");
  }

  fs::path out() const { return in_folder("cats"); }
  Outcome init(const Words& more = {}) const {
    return trainer(Words{"init", out(), "--data", data_} + more);
  }
  Json split(const std::string& name) const {
    return read_json(out() / "data" / "annotations" / ("instances_" + name + ".json"));
  }

  /// Makes a Pascal VOC folder of the sample's images, labelled with boxes.
  fs::path make_voc(std::size_t count, const std::string& mistake_in_first = "") const {
    const auto root = in_folder("voc");
    fs::create_directories(root / "JPEGImages");
    fs::create_directories(root / "Annotations");
    const auto all = read_json(annotations_);
    std::map<std::int64_t, std::string> names;
    for (const auto& category : all["categories"]) names[category["id"]] = category["name"];
    for (std::size_t i = 0; i < std::min(count, all["images"].size()); ++i) {
      const auto& image = all["images"][i];
      const std::string file = image["file_name"];
      fs::copy_file(data_ / "train2017" / file, root / "JPEGImages" / file);
      std::string xml = "<annotation><filename>" + file + "</filename><size><width>" +
                        image["width"].dump() + "</width><height>" + image["height"].dump() +
                        "</height><depth>3</depth></size>";
      for (const auto& object : all["annotations"]) {
        if (object["image_id"] != image["id"] || object["iscrowd"] == 1) continue;
        const double x = object["bbox"][0], y = object["bbox"][1], w = object["bbox"][2],
                     h = object["bbox"][3];
        xml += "<object><name>" + names[object["category_id"]] + "</name><bndbox><xmin>" +
               std::to_string(int(x) + 1) + "</xmin><ymin>" + std::to_string(int(y) + 1) +
               "</ymin><xmax>" + std::to_string(int(x + w)) + "</xmax><ymax>" +
               std::to_string(int(y + h)) + "</ymax></bndbox></object>";
      }
      if (i == 0) xml += mistake_in_first;
      write_text(root / "Annotations" / fs::path(file).replace_extension(".xml"),
                 xml + "</annotation>");
    }
    return root;
  }
};

TEST_F(InitTest, WritesConfigurationThatTrains) {
  fs::copy_file(first_image(), data_ / "train2017" / "again.jpg");
  edit(annotations_, [](Json& json) {
    auto image = json["images"][0];
    image["id"] = 1'000'000;
    image["file_name"] = "again.jpg";
    json["images"].push_back(image);
  });
  const auto outcome = successful(init());
  EXPECT_THAT(words_of(outcome), HasSubstr("near-copy"));
  EXPECT_THAT(outcome.out, HasSubstr("trainer run " + (out() / "config.toml").string()));

  const auto train = split("train"), val = split("val");
  std::set<std::string> trained, evaluated;
  for (const auto& image : train["images"]) trained.insert(image["file_name"]);
  for (const auto& image : val["images"]) evaluated.insert(image["file_name"]);
  EXPECT_EQ(trained.size() + evaluated.size(), 9U);
  EXPECT_THAT(evaluated, Not(IsEmpty()));
  const auto first = first_image().filename().string();
  EXPECT_EQ(trained.contains(first), trained.contains("again.jpg"));
  for (const auto& name : trained) {
    EXPECT_FALSE(evaluated.contains(name)) << name;
    EXPECT_TRUE(fs::is_symlink(out() / "data" / "train" / name)) << name;
    EXPECT_EQ(read_text(out() / "data" / "train" / name), read_text(data_ / "train2017" / name));
  }

  const auto config = (out() / "config.toml").string();
  EXPECT_THAT(successful(trainer({"config", config})).out, HasSubstr("model.anchors"));
  successful(trainer(
      with_settings({"run", config},
                    kTrainOnly + Words{"train.max_steps=2", "callbacks.keep_best.enabled=false"})));
  EXPECT_TRUE(fs::exists(out() / "runs" / "config-1" / "metrics.jsonl"));
  successful(trainer({"doctor", config}));
}

TEST_F(TrainerOnData, InitUsesModelStoredWithWeights) {
  successful(trainer(on(data_, {"run", "--out", in_folder("runs")},
                        kTrainOnly + Words{"train.max_steps=1", "model.roi.sampling_ratio=3"})));
  const auto weights =
      in_folder("runs") / "maskrcnn-1" / "checkpoints" / "step-000001" / "model.safetensors";
  const auto out = in_folder("given");
  successful(trainer({"init", out, "--data", data_, "--weights", weights}));
  EXPECT_THAT(successful(trainer({"config", out / "config.toml"})).out,
              AllOf(HasSubstr("sampling_ratio = 3"), HasSubstr("width = 16")));
}

TEST_F(TrainerOnData, InitReadsCocoFolderUnchanged) {
  const auto out = in_folder("as_it_is");
  successful(trainer({"init", out, "--data", data_}));
  EXPECT_FALSE(fs::exists(out / "data"));
  const auto text = read_text(out / "config.toml");
  EXPECT_THAT(text, AllOf(HasSubstr("root = \"" + data_.string() + '"'),
                          HasSubstr("train = \"train2017\""), HasSubstr("val = \"val2017\"")));
  successful(trainer({"doctor", out / "config.toml", "--images", "none"}));
}

TEST_F(InitTest, RaisesDetectionLimitForDenseScenes) {
  edit(annotations_, [](Json& json) {
    auto& all = json["annotations"];
    const auto images = json["images"].size();
    auto one = all[0];
    for (std::size_t k = 0; k < 130 * images; ++k) {
      one["id"] = 100000 + k;
      one["image_id"] = json["images"][k % images]["id"];
      one["bbox"] = {k / images % 12 * 8, k / images / 12 * 8, 7, 7};
      one.erase("segmentation");
      all.push_back(one);
    }
  });
  const auto said = successful(init({"--json"})).json();
  EXPECT_THAT(said.at("limit").get<std::string>(), HasSubstr("100"));
  EXPECT_THAT(read_text(out() / "config.toml"), ContainsRegex("max_detections = [2-9]00"));
}

TEST_F(InitTest, WritesSameBytesAgain) {
  successful(init());
  const auto once = contents(out());
  fs::remove_all(out());
  successful(init({"--json"}));
  EXPECT_EQ(contents(out()), once);
}

TEST_F(InitTest, ReportsAsJson) {
  const auto json = successful(init({"--json", "--model", "retinanet"})).json();
  EXPECT_EQ(json["config"], (out() / "config.toml").string());
  EXPECT_GT(json["step_s"], 0);
  EXPECT_GE(json["training_s"], json["step_s"]);
  EXPECT_THAT(json["next"], SizeIs(Ge(2U)));
  EXPECT_THAT(read_text(out() / "config.toml"), HasSubstr("type = \"retinanet\""));
}

TEST_F(InitTest, ReportsMistakesInTenPhotos) {
  const auto voc =
      make_voc(10,
               "<object><name>stra</name><bndbox><xmin>5</xmin><ymin>5</ymin><xmax>900</xmax>"
               "<ymax>60</ymax></bndbox></object>");
  const auto outcome = successful(trainer({"init", out(), "--data", voc}));
  EXPECT_THAT(words_of(outcome), HasSubstr("-outside)"));
  EXPECT_THAT(outcome.out, HasSubstr("Annotations/"));
  EXPECT_THAT(read_text(out() / "config.toml"), HasSubstr("type = \"fasterrcnn\""));
  successful(trainer({"config", out() / "config.toml"}));
}

TEST_F(InitTest, NamesAndSkipsBrokenImage) {
  write_text(first_image(), "no image");
  const auto name = first_image().filename().string();
  EXPECT_THAT(successful(init()).out, HasSubstr(name));
  for (const auto* side : {"train", "val"})
    for (const auto& image : split(side)["images"]) EXPECT_NE(image["file_name"], name);
}

TEST_F(InitTest, SplitsThreeImagesButNotOne) {
  const auto keep = [this](std::size_t count) {
    edit(annotations_, [count](Json& json) {
      Json annotations = Json::array();
      json["images"].erase(json["images"].begin() + static_cast<std::ptrdiff_t>(count),
                           json["images"].end());
      for (const auto& one : json["annotations"])
        for (const auto& image : json["images"])
          if (image["id"] == one["image_id"]) annotations.push_back(one);
      json["annotations"] = annotations;
    });
  };
  keep(3);
  successful(init());
  EXPECT_EQ(split("train")["images"].size(), 2U);
  EXPECT_EQ(split("val")["images"].size(), 1U);
  fs::remove_all(out());
  keep(1);
  successful(init());
  EXPECT_THAT(read_text(out() / "config.toml"), HasSubstr("val = \"train\""));
}

TEST_F(InitTest, DropsClassesWithoutObjects) {
  edit(annotations_, [](Json& json) {
    for (int k = 0; k < 3000; ++k)
      json["categories"].push_back({{"id", 1000 + k}, {"name", "class " + std::to_string(k)}});
    int next = 0;
    for (auto& object : json["annotations"]) object["category_id"] = 1000 + 2 * next++;
  });
  successful(init());
  const auto used = read_json(annotations_)["annotations"].size();
  EXPECT_EQ(split("train")["categories"].size(), used);
  EXPECT_EQ(split("train")["categories"], split("val")["categories"]);
}

TEST_F(InitTest, RejectsUnusableInput) {
  expect_error(trainer({"init", out(), "--data", in_folder("nothing")}), 2, "nothing");
  fs::create_directories(in_folder("empty"));
  expect_error(trainer({"init", out(), "--data", in_folder("empty")}), 2, "empty");
  expect_error(init({"--weights", in_folder("no.pth").string()}), 1, "no.pth");
  EXPECT_FALSE(fs::exists(out()));
  fs::create_directories(out());
  write_text(out() / "notes.txt", "mine");
  expect_error(init(), 2, out().string());
  EXPECT_EQ(read_text(out() / "notes.txt"), "mine");
  fs::remove_all(out());
  fs::remove_all(data_ / "train2017");
  EXPECT_EQ(init().exit_code, 1);
  EXPECT_FALSE(fs::exists(out()));
}

TEST_F(InitTest, RejectsFolderWithoutObjects) {
  edit(annotations_, [](Json& json) { json["annotations"] = Json::array(); });
  const auto outcome = init();  // it has already reported on the data
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("train2017"));
}

}  // namespace
}  // namespace millrace::testing
