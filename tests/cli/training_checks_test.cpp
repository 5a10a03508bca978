// Checks before training starts, by the model and by `doctor`.
#include "tests/cli/trainer.h"

namespace millrace::testing {
namespace {

class TrainingChecks : public TrainerOnData {
 protected:
  Outcome on_data(const Words& command, const Words& settings = {}) const {
    const auto run =
        kTrainOnly + Words{"train.max_steps=1", setting("train.output", in_folder("runs"))};
    return trainer(on(data_, command, settings + (command[0] == "run" ? run : Words{})));
  }

  /// Returns the names of the report's findings of this severity.
  static Words findings(const Json& report, const std::string& severity) {
    Words names;
    for (const auto& finding : report["findings"])
      if (finding["severity"] == severity) names.push_back(finding["name"]);
    return names;
  }
};

TEST_F(TrainingChecks, RejectsMaskHeadWithoutShapes) {
  for (const auto& split : {annotations_, val_annotations_})
    edit(split, [](Json& json) {
      for (auto& object : json["annotations"]) object.erase("segmentation");
    });
  expect_error(on_data({"run"}), 2, "model.masks");
  const auto report = on_data({"doctor", "--json"});
  EXPECT_EQ(report.exit_code, 1) << report.err;
  EXPECT_THAT(findings(report.json(), "error"), Contains("training-refused"));
  EXPECT_THAT(report.out, HasSubstr("model.masks"));

  successful(on_data({"run"}, {"model.masks=false"}));
  const auto healthy = successful(on_data({"doctor", "--json"}, {"model.masks=false"}));
  EXPECT_THAT(findings(healthy.json(), "error"), IsEmpty());
}

TEST_F(TrainingChecks, CountsObjectsWithoutShape) {
  edit(annotations_, [](Json& json) {
    for (const auto i : {0, 3}) json["annotations"][i].erase("segmentation");
  });
  const auto run = successful(on_data({"run"}));
  EXPECT_THAT(run.err, AllOf(ContainsRegex("warning .*2 of "), HasSubstr(data_.string())));
  const auto report = on_data({"doctor", "--json"});
  EXPECT_THAT(findings(report.json(), "warning"), Contains("training-doubtful"));
}

TEST_F(TrainingChecks, RejectsDataWithoutObjects) {
  const auto config =
      write_heir(in_folder("folder.toml"), "[data]\nroot = '" + data_.string() +
                                               "'\n[[data.sources]]\ntype = 'folder'\nroot = '" +
                                               in_folder("data/train2017").string() + "'\n");
  expect_error(trainer({"run", config, "--out", in_folder("runs")}), 2, "8 images");
  const auto report = trainer({"doctor", config, "--json"});
  EXPECT_EQ(report.exit_code, 1) << report.err;
  EXPECT_THAT(findings(report.json(), "error"), Contains("training-refused"));
}

TEST_F(TrainingChecks, WarnsAboutFrozenNormsWithoutWeights) {
  EXPECT_THAT(on_data({"run"}).err, Not(ContainsRegex("warning .*model.backbone")));
  EXPECT_THAT(on_data({"run"}, {"model.backbone.norm=frozen_bn"}).err,
              ContainsRegex("warning .*model.backbone.norm"));
  EXPECT_THAT(on_data({"run"}, {"model.backbone.freeze_at=2"}).err,
              ContainsRegex("warning .*model.backbone.freeze_at"));
}

}  // namespace
}  // namespace millrace::testing
