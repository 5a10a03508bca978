// What a model says of a training before it begins, and `doctor` with it.
#include "tests/cli/trainer.h"

namespace millrace::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class TrainingChecks : public Trainer {
 protected:
  /// Changes each object of a split's annotations.
  template <class Change>
  void change_objects(const std::string& split, Change change) const {
    const auto file = in_folder("data/annotations/instances_" + split + ".json");
    auto json = read_json(file);
    for (std::size_t i = 0; i < json["annotations"].size(); ++i) change(json["annotations"][i], i);
    write_json(file, json);
  }

  Outcome on_data(std::vector<std::string> command, std::vector<std::string> settings = {}) const {
    if (command[0] == "run")
      settings.insert(settings.end(),
                      {"train.max_steps=1", "train.output=\"" + in_folder("runs").string() + "\"",
                       "callbacks.evaluate.enabled=false", "callbacks.pictures.enabled=false"});
    return trainer(on(in_folder("data"), std::move(command), settings));
  }

  /// Names of the report's findings of that severity.
  static std::vector<std::string> findings(const Json& report, const std::string& severity) {
    std::vector<std::string> names;
    for (const auto& finding : report["findings"])
      if (finding["severity"] == severity) names.push_back(finding["name"]);
    return names;
  }
};

TEST_F(TrainingChecks, AMaskHeadNeedsShapes) {
  make_data();
  for (const auto* split : {"train2017", "val2017"})
    change_objects(split, [](Json& object, std::size_t) { object.erase("segmentation"); });
  expect_error(on_data({"run"}), 2,
               "objects to train on has a shape (\"segmentation\"): the mask head would learn "
               "nothing; set model.masks = false to train on boxes alone");
  const auto report = on_data({"doctor", "--json"});
  EXPECT_EQ(report.exit_code, 1) << report.err;
  EXPECT_THAT(findings(report.json(), "error"), Contains("training-refused"));
  EXPECT_THAT(report.out, HasSubstr("set model.masks = false"));

  const auto boxes = on_data({"run"}, {"model.masks=false"});
  EXPECT_EQ(boxes.exit_code, 0) << boxes.err;
  const auto healthy = on_data({"doctor", "--json"}, {"model.masks=false"});
  EXPECT_EQ(healthy.exit_code, 0) << healthy.out;
  EXPECT_THAT(findings(healthy.json(), "error"), IsEmpty());
}

TEST_F(TrainingChecks, ObjectsWithoutAShapeAreCounted) {
  make_data();
  change_objects("train2017", [](Json& object, std::size_t i) {
    if (i == 0 || i == 3) object.erase("segmentation");
  });
  const auto run = on_data({"run"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, AllOf(HasSubstr("2 of the "), HasSubstr("objects to train on have no shape"),
                             HasSubstr("the first is in " + in_folder("data").string())));
  const auto report = on_data({"doctor", "--json"});
  EXPECT_THAT(findings(report.json(), "warning"), Contains("training-doubtful"));
}

TEST_F(TrainingChecks, AFolderOfImagesHasNothingToLearn) {
  make_data();
  write_text(in_folder("folder.toml"), "base = '" + fs::absolute("configs/maskrcnn.toml").string() +
                                           "'\n[data]\nroot = '" + in_folder("data").string() +
                                           "'\n[[data.sources]]\ntype = 'folder'\nroot = '" +
                                           in_folder("data/train2017").string() + "'\n");
  const auto command = [&](std::vector<std::string> words) {
    words.push_back(in_folder("folder.toml").string());
    return words;
  };
  const auto refused = trainer(command({"run", "--output", in_folder("runs").string()}));
  expect_error(refused, 2,
               "there is nothing to learn: none of the 8 images to train on has an object");
  const auto report = trainer(command({"doctor", "--json"}));
  EXPECT_EQ(report.exit_code, 1) << report.err;
  EXPECT_THAT(findings(report.json(), "error"), Contains("training-refused"));
}

TEST_F(TrainingChecks, FrozenNormsWithoutWeightsAreWarnedOf) {
  make_data();
  EXPECT_THAT(on_data({"run"}).err, Not(HasSubstr("model.weights is ''")));
  EXPECT_THAT(
      on_data({"run"}, {"model.backbone.norm=frozen_bn"}).err,
      HasSubstr(
          "model.backbone.norm = \"frozen_bn\" starts without weights (model.weights is '')"));
  EXPECT_THAT(on_data({"run"}, {"model.backbone.freeze_at=2"}).err,
              HasSubstr("model.backbone.freeze_at = 2 freezes layers at random values"));
}

}  // namespace
}  // namespace millrace::testing
