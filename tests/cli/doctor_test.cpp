// trainer doctor: its report, its exit codes, and its checks of sources.
#include "tests/cli/trainer.h"

#include <algorithm>

#include "tests/support/data.h"

namespace millrace::testing {
namespace {

class Doctor : public TrainerOnData {
 protected:
  Outcome doctor(const Words& more = {}, const Words& overrides = {}) const {
    return trainer(on(data_, {"doctor"}, overrides) + more);
  }

  /// Returns one "severity name where count" per finding.
  static Words findings(const Outcome& outcome, const std::string& severity) {
    Words result;
    const auto json = outcome.json();
    for (const auto& one : json["findings"])
      if (one["severity"] == severity)
        result.push_back(one["name"].get<std::string>() + " in " + one["where"].get<std::string>() +
                         ": " + std::to_string(one["count"].get<int>()));
    return result;
  }
  Words errors(const Words& overrides = {}) const {
    const auto outcome = doctor({"--json"}, overrides);
    const auto found = findings(outcome, "error");
    EXPECT_EQ(outcome.exit_code, found.empty() ? 0 : 1) << outcome.err;
    return found;
  }
};

TEST_F(Doctor, AcceptsSampleDataSet) {
  const auto outcome = successful(doctor());
  EXPECT_THAT(outcome.out, StartsWith("train2017: 8 images, "));
  EXPECT_THAT(outcome.out, HasSubstr("\nval2017: 4 images, "));
  EXPECT_THAT(outcome.out, HasSubstr("no errors"));
  EXPECT_THAT(findings(doctor({"--json"}), "error"), IsEmpty());
}

TEST_F(Doctor, ReportsScoresOfPerfectPredictions) {
  const auto outcome = successful(doctor());
  for (const auto* part :
       {" val2017:\n", "NMS 0.5", "box AP ", "matching anchor", "28 x 28", "mask AP "})
    EXPECT_THAT(outcome.out, HasSubstr(part));
  const auto few = successful(doctor({"--json"}, {"model.test.detections_per_img=1",
                                                  "model.mask.pooler_resolution=2"}))
                       .json()
                       .at("ceiling");
  EXPECT_EQ(few.at("split"), "val2017");
  EXPECT_GT(few.at("boxes").at("beyond_limit"), 0);
  EXPECT_LT(few.at("boxes").at("ap"), .9);
  EXPECT_EQ(few.at("masks").at("cells"), 4);
  EXPECT_LT(few.at("masks").at("ap"), .6);
}

TEST_F(Doctor, WarnsAboutObjectsBeyondDetectionLimit) {
  edit(val_annotations_, [](Json& json) {
    auto& all = json["annotations"];
    auto one =
        *std::ranges::find_if(all, [](const Json& object) { return object["iscrowd"] == 0; });
    for (int k = 0; k < 150; ++k) {
      one["id"] = 100000 + k;
      all.push_back(one);
    }
  });
  EXPECT_THAT(findings(doctor({"--json"}), "warning"),
              Contains("evaluation-limited in val2017: 1"));
  EXPECT_THAT(findings(doctor({"--json"}, {"callbacks.evaluate.max_detections=200"}), "warning"),
              Not(Contains(HasSubstr("evaluation-limited"))));
}

TEST_F(Doctor, ReportsErrorWithExitCodeOne) {
  edit(annotations_, [](Json& json) { json["annotations"][0]["bbox"][2] = 0; });
  const auto outcome = doctor();
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out, HasSubstr("error    box-unusable, 1 in train2017: "));
  EXPECT_THAT(outcome.out, HasSubstr(": 1 error, "));
  EXPECT_THAT(errors(), Contains("box-unusable in train2017: 1"));
}

TEST_F(Doctor, ReportsFindingsAsJson) {
  edit(annotations_, [](Json& json) {
    for (auto& object : json["annotations"]) object["image_id"] = 4711;
  });
  const auto outcome = doctor({"--json", "--max", "2"});
  const auto json = outcome.json();
  const auto count = read_json(annotations_)["annotations"].size();
  const auto found = std::find_if(json["findings"].begin(), json["findings"].end(),
                                  [](const auto& one) { return one["name"] == "image-unknown"; });
  ASSERT_NE(found, json["findings"].end());
  EXPECT_EQ((*found)["count"], count);
  EXPECT_EQ((*found)["examples"].size(), 2U);
  EXPECT_EQ((*found)["examples"][0]["image"], 4711);
  EXPECT_EQ((*found)["examples"][0]["annotation"], read_json(annotations_)["annotations"][0]["id"]);
  EXPECT_THAT(findings(outcome, "error"), Contains("nothing-to-train in train2017: 1"));
}

TEST_F(Doctor, ChecksOtherSplitIfFileIsTruncated) {
  const auto text = read_text(annotations_);
  write_text(annotations_, text.substr(0, text.size() / 2));
  fs::remove(data_ / "val2017" / read_json(val_annotations_)["images"][0]["file_name"]);
  EXPECT_THAT(errors(),
              ElementsAre("file-unreadable in train2017: 1", "image-missing in val2017: 1"));
}

TEST_F(Doctor, ReportsBrokenImages) {
  const auto image = first_image();
  fs::resize_file(image, fs::file_size(image) / 2);
  EXPECT_THAT(errors(), ElementsAre("image-unreadable in train2017: 1"));
  const auto quick = successful(doctor({"--images", "headers"}));
  EXPECT_THAT(quick.out, HasSubstr("(--images headers)"));
  fs::remove(image);
  EXPECT_EQ(doctor({"--images", "headers"}).exit_code, 1);
  const auto blind = successful(doctor({"--images", "none"}));
  EXPECT_THAT(blind.out, HasSubstr("(--images none)"));
}

TEST_F(Doctor, ReportsImagesAboveMaximum) {
  const auto outcome = doctor({"--set", "data.max_pixels=100"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("image-unreadable"), HasSubstr("data.max_pixels"),
                                 HasSubstr(first_image().filename().string())));
}

TEST_F(Doctor, ReportsPhotoInBothSplits) {
  const auto val = read_json(val_annotations_)["images"][1];
  fs::copy_file(data_ / "val2017" / val["file_name"], first_image(),
                fs::copy_options::overwrite_existing);
  edit(annotations_, [&](Json& json) {
    json["images"][0]["width"] = val["width"];
    json["images"][0]["height"] = val["height"];
  });
  EXPECT_THAT(errors(), Contains("photo-in-both-splits in all splits: 1"));
}

TEST_F(Doctor, UsesClassesOfConfiguration) {
  const auto json = doctor({"--json"}, {"data.classes=[\"star\"]"}).json();
  ASSERT_EQ(json["classes"].size(), 1U);
  EXPECT_EQ(json["classes"][0]["name"], "star");
  EXPECT_THAT(errors({"data.classes=[\"stra\"]"}), Contains("class-unknown in train2017: 1"));
  expect_error(doctor({}, {"data.classes=[\"star\",\"star\"]"}), 2, "'star' twice");
}

TEST_F(Doctor, ChecksShapesOnlyForMasks) {
  edit(annotations_, [](Json& json) {
    json["annotations"][0]["segmentation"] = {{1, 1, 9, 9, 1, 1}};
  });
  EXPECT_THAT(errors(), ElementsAre("shape-empty in train2017: 1"));
  const auto boxes = successful(doctor({}, {"model.masks=false"}));
  EXPECT_THAT(boxes.out, HasSubstr("model.masks"));
}

TEST_F(Doctor, ReportsSplitUsedTwice) {
  const auto outcome = successful(doctor({}, {"data.val=\"train2017\""}));
  EXPECT_THAT(outcome.out, Not(HasSubstr("photo-in-both-splits")));
  EXPECT_THAT(outcome.out, HasSubstr("data.train"));
}

TEST_F(Doctor, RejectsMissingSplitsAndWrongValues) {
  expect_error(doctor({}, {"data.train=\"nosuch\""}), 2, "instances_nosuch.json");
  expect_error(doctor({}, {"data.batch_size=0"}), 2, "batch_size");
  expect_error(doctor({"--images", "some"}), 2, "--images");
}

TEST_F(Doctor, AcceptsNonUtf8FileNames) {
  write_text(data_ / "train2017" / "\xff.jpg", "");
  const auto outcome = successful(doctor({"--json"}));
  EXPECT_THAT(findings(outcome, "note"), Contains("file-orphan in train2017: 1"));
}

TEST_F(Doctor, ExaminesDeclaredSources) {
  const auto store = in_folder("packed");
  ASSERT_EQ(trainer(on(data_, {"pack"}, {})).exit_code, 2) << "needs --out";
  successful(trainer(on(data_, {"pack", "--out", store})));
  const auto source = "data.sources=[{type=\"records\", folder=\"" + store.string() + "\"}]";
  const auto sound = successful(doctor({}, {source}));
  EXPECT_THAT(sound.out, StartsWith("data.sources: 8 images"));
  EXPECT_THAT(sound.out, HasSubstr("[[data.sources]]"));

  const auto folder = "data.sources=[{type=\"coco\"}]";
  fs::resize_file(first_image(), 300);
  EXPECT_THAT(errors({folder}), ElementsAre("sample-unusable in data.sources: 1"));
  write_text(annotations_, "no JSON");
  EXPECT_THAT(errors({folder, "data.classes=[\"star\"]"}),
              ElementsAre("source-unreadable in data.sources: 1"));
}

TEST_F(Doctor, ReportsSameForAnyThreadCount) {
  edit(annotations_, [](Json& json) {
    for (std::size_t i = 0; i < json["annotations"].size(); i += 2)
      json["annotations"][i]["bbox"][2] = 0;
  });
  const auto one = doctor({}, {"data.threads=1"});
  EXPECT_EQ(one.exit_code, 1);
  for (const char* threads : {"2", "3", "8"})
    EXPECT_EQ(doctor({}, {std::string("data.threads=") + threads}).out, one.out);
}

TEST_F(Doctor, EscapesControlCharactersInNames) {
  const std::string name = "star\x1b]0;title\x07\x7f";
  for (const auto& file : {annotations_, val_annotations_})
    edit(file, [&](Json& json) { json["categories"][0]["name"] = name; });
  const auto text = successful(doctor());
  EXPECT_THAT(text.out + text.err, Not(ContainsRegex("[\x1b\x07\x7f]")));
  EXPECT_THAT(text.out, HasSubstr("star\\x1b]0;title\\x07\\x7f"));
  const auto json = successful(doctor({"--json"}));
  EXPECT_THAT(json.out, Not(ContainsRegex("[\x1b\x07\x7f]")));
  EXPECT_EQ(json.json().at("classes").at(0).at("name"), name);
}

TEST_F(Doctor, ExaminesRunFolder) {
  successful(trainer(
      on(data_, {"run", "--out", in_folder("runs")}, kTrainOnly + Words{"train.max_steps=1"})));
  const auto run = in_folder("runs") / "maskrcnn-1";
  const auto of_run = successful(trainer({"doctor", run, "--json"})).json();
  EXPECT_EQ(of_run.at("findings"), successful(doctor({"--json"})).json().at("findings"));
}

TEST_F(Doctor, ExaminesFolderOfImagesAndLabels) {
  const auto sound = successful(trainer({"doctor", data_, "--json"})).json();
  EXPECT_THAT(sound.at("data").get<std::string>(),
              AllOf(HasSubstr(data_.string()), HasSubstr("COCO"), HasSubstr("8 images")));
  EXPECT_THAT(sound.at("split").get<std::string>(), HasSubstr("4 images"));
  EXPECT_FALSE(sound.contains("config")) << "nothing is written";
  fs::resize_file(first_image(), 300);
  const auto broken = trainer({"doctor", data_});
  EXPECT_EQ(broken.exit_code, 1);
  EXPECT_THAT(broken.out, HasSubstr("image-unreadable"));
}

TEST_F(Doctor, RejectsFoldersWithoutLabels) {
  const auto photos = data_ / "train2017";
  expect_error(trainer({"doctor", photos}), 2, photos.string());
  expect_error(trainer({"doctor", data_, "--set", "data.threads=1"}), 2, "--set");
}

TEST_F(Doctor, FindsNoErrorsInRealPhotos) {
  MILLRACE_NEEDS_DATA("coco_mini");
  const auto outcome = successful(trainer(on(data_folder() / "coco_mini", {"doctor", "--json"})));
  EXPECT_THAT(findings(outcome, "error"), IsEmpty());
  EXPECT_THAT(findings(outcome, "warning"), ElementsAre("class-unlearned in all splits: 9"));
}

}  // namespace
}  // namespace millrace::testing
