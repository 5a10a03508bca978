// trainer import-config: published recipes of others are those of configs/coco.
#include <cmath>
#include <map>

#include "tests/cli/trainer.h"

namespace millrace::testing {
namespace {

const std::string kTheirs = "tests/migration/recipes/";

class ImportConfig : public Trainer {
 protected:
  /// The values of a resolved configuration by "table.key".
  std::map<std::string, std::string> resolved(const fs::path& file) {
    std::istringstream lines(successful(trainer({"config", file})).out);
    std::map<std::string, std::string> values;
    std::string table;
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with('[')) table = line.substr(1, line.find(']') - 1);
      const auto sign = line.find(" = ");
      if (sign == std::string::npos) continue;
      auto value = line.substr(sign + 3, line.find("  # ") - sign - 3);
      value.erase(value.find_last_not_of(' ') + 1);
      values[table + "." + line.substr(0, sign)] = value;
    }
    return values;
  }

  std::map<std::string, std::string> imported(const Words& words,
                                              const std::string& out = "out.toml") {
    fs::remove(in_folder(out));
    successful(trainer(Words{"import-config"} + words + Words{"--out", in_folder(out)}));
    return resolved(in_folder(out));
  }
};

TEST_F(ImportConfig, Detectron2sRecipesAreThoseOfConfigs) {
  int seen = 0;
  for (const auto& entry : fs::directory_iterator("configs/coco")) {
    const auto name = entry.path().stem().string();
    const auto theirs = kTheirs + "detectron2/" + name + ".yaml";
    if (!fs::exists(theirs)) continue;
    ++seen;
    const auto ours = resolved(entry.path());
    const auto given = imported({theirs, "--gpus", "8"});
    ASSERT_EQ(ours.size(), given.size()) << name;
    for (const auto& [key, value] : ours) {
      if (key == "data.root") {  // detectron2 keeps data sets in its own folder
        EXPECT_EQ(given.at(key), '"' + in_folder("datasets/coco").string() + '"') << name;
      } else if (key == "train.epochs") {  // ours are cut to two decimals
        EXPECT_NEAR(std::stod(given.at(key)), std::stod(value), 0.006) << name;
      } else if (key == "schedule.milestones") {
        double a = 0, b = 0, x = 0, y = 0;
        ASSERT_EQ(std::sscanf(value.c_str(), "[%lf, %lf]", &a, &b), 2);
        ASSERT_EQ(std::sscanf(given.at(key).c_str(), "[%lf, %lf]", &x, &y), 2);
        EXPECT_NEAR(a, x, 0.006) << name;
        EXPECT_NEAR(b, y, 0.006) << name;
      } else {
        EXPECT_EQ(given.at(key), value) << name << ": " << key;
      }
    }
  }
  EXPECT_EQ(seen, 13);
}

TEST_F(ImportConfig, AValueSaysWhereItComesFromAndDefaultsAreLeftOut) {
  const auto outcome = successful(trainer(
      {"import-config", kTheirs + "detectron2/faster_rcnn_R50_FPN_1x.yaml", "--gpus", "8"}));
  EXPECT_THAT(
      outcome.out,
      AllOf(StartsWith("# faster_rcnn_R50_FPN_1x.yaml, a recipe of detectron2"),
            ContainsRegex("type = \"fasterrcnn\" +# .*faster_rcnn_R50_FPN_1x.yaml:5 "
                          "MODEL.MASK_ON"),
            ContainsRegex("epochs = 12.2798 +# .*base_rcnn.yaml:26 SOLVER.MAX_ITER: 90000 x "
                          "16 images / 117266"),
            Not(HasSubstr("momentum")), Not(HasSubstr("[model.rpn]"))));
  EXPECT_THAT(outcome.err, HasSubstr("Next: trainer config"));
}

TEST_F(ImportConfig, WhatIsNotTranslatedIsOnStandardError) {
  const auto outcome =
      successful(trainer({"import-config", kTheirs + "mmdetection3/mask_rcnn.py"}));
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("not translated, because"),
                    HasSubstr("each object's best anchor is foreground, however small its IoU"),
                    HasSubstr("model.py:62  model.train_cfg.rpn.assigner.min_pos_iou = 0.3")));
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("[[optimizer.groups]]"), Not(HasSubstr("min_pos_iou"))));
}

TEST_F(ImportConfig, MmDetectionsRecipesResolve) {
  const auto mask = imported({kTheirs + "mmdetection3/mask_rcnn.py"});
  EXPECT_EQ(mask.at("model.roi.sampling_ratio"), "2");
  EXPECT_EQ(mask.at("model.backbone.norm"), "\"frozen_stats\"");
  const auto retina = imported({kTheirs + "mmdetection2/retinanet.py", "data.samples_per_gpu=2"});
  EXPECT_EQ(retina.at("optimizer.lr_batch"), "16");
  EXPECT_EQ(retina.at("model.head.focal_loss_gamma"), "1.5");
}

TEST_F(ImportConfig, OverridesAreThoseOfTheirCommandLines) {
  const auto values =
      imported({kTheirs + "detectron2/faster_rcnn_R50_FPN_1x.yaml", "SOLVER.BASE_LR", "0.005",
                "SEED", "7", "DATASETS.TRAIN", "('coco_2014_train',)", "--images", "82081"});
  EXPECT_EQ(values.at("optimizer.lr"), "0.005");
  EXPECT_EQ(values.at("train.seed"), "7");
  EXPECT_EQ(values.at("data.train"), "\"train2014\"");
}

TEST_F(ImportConfig, WhatIsWrongIsNamedWithFileAndLine) {
  const auto recipe = in_folder("wrong.yaml");
  write_text(recipe, "MODEL:\n  META_ARCHITECTURE: GeneralizedRCNN\n  KEYPOINT_ON: True\n");
  expect_error(trainer({"import-config", recipe}), 2,
               recipe.string() + ":3: MODEL.KEYPOINT_ON = True");
  expect_error(trainer({"import-config", in_folder("none.yaml")}), 1, "none.yaml");
  expect_error(trainer({"import-config", "README.md"}), 2, "a recipe is detectron2's .yaml");
  write_text(in_folder("kept.toml"), "mine");
  expect_error(trainer({"import-config", kTheirs + "mmdetection2/retinanet.py", "--out",
                        in_folder("kept.toml")}),
               2, "kept.toml exists");
  EXPECT_EQ(read_text(in_folder("kept.toml")), "mine");
}

}  // namespace
}  // namespace millrace::testing
