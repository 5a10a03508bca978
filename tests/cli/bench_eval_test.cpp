// trainer bench eval measures a generated data set, which is the same each time.
#include "tests/cli/trainer.h"

namespace millrace::testing {
namespace {

using BenchEval = Trainer;

TEST_F(BenchEval, MeasuresEveryPart) {
  const auto figures =
      successful(trainer({"bench", "eval", "--images", "20", "--rounds", "1", "--json"})).json();
  EXPECT_EQ(figures.at("detections"), 2000);
  for (const auto* iou : {"bbox", "segm"})
    for (const auto* part :
         {"read_truth_s", "read_detections_s", "evaluate_s", "s", "cpu_s", "floor_s"})
      EXPECT_GT(figures.at(iou).at(part).get<double>(), 0) << iou << " " << part;
}

TEST_F(BenchEval, GeneratesSameDataForSameSeed) {
  const auto make = [&](const std::string& name, const std::string& seed) {
    const auto folder = in_folder(name);
    successful(trainer(
        {"bench", "eval", "--images", "12", "--rounds", "0", "--seed", seed, "--folder", folder}));
    return folder;
  };
  const auto a = make("a", "1"), b = make("b", "1"), c = make("c", "2");
  for (const std::string file : {"instances.json", "boxes.json", "masks.json"}) {
    EXPECT_EQ(read_text(a / file), read_text(b / file));
    EXPECT_NE(read_text(a / file), read_text(c / file));
  }
  for (const std::string iou : {"bbox", "segm"}) {
    const auto scored = successful(trainer(
        {"coco-eval", "--gt", a / "instances.json", "--dt",
         (a / (iou == "bbox" ? "boxes.json" : "masks.json")).string(), "--iou", iou, "--json"}));
    const double ap = scored.json().at("stats").at(0);
    EXPECT_GT(ap, 0);
    EXPECT_LT(ap, 1);
  }
}

TEST_F(BenchEval, MeasuresLoadingWithAndWithoutCache) {
  const auto folder = in_folder("set");
  trainer({"bench", "eval", "--images", "400", "--detections", "0", "--folder", folder});
  const auto result =
      successful(trainer({"bench", "eval", "--annotations", folder / "instances.json", "--json"}));
  EXPECT_GT(result.json().at("seconds").get<double>(), 0);
  EXPECT_GT(result.json().at("cached_s").get<double>(), 0);
}

}  // namespace
}  // namespace millrace::testing
