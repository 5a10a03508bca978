// Training runs that lose an image in every epoch, and the ways to divide their steps.
#pragma once

#include "tests/end_to_end/training.h"
#include "tests/faults/mpirun.h"
#include "tests/support/json_lines.h"

namespace millrace::testing {

class ShortBatches : public Mpirun {
 protected:
  static constexpr int kImages = 8;  // per epoch, and per step unless one is lost

  /// A training run and how its image is lost: by a broken file with data.on_error = "skip",
  /// "replace" or "fail", or by a "filter" stage after `decode`.
  struct Recipe {
    std::string detector, loss;
    int steps = 2;
    Words settings = {};
  };

  /// The division of a step into ranks and micro-batches.
  struct Division {
    int ranks = 1, accumulate = 1, micro_batch = 0, passes = 1, threads = 1;

    int batch_size() const { return kImages / accumulate / ranks; }
    Words settings() const {
      const auto set = [](const char* key, int value) { return key + std::to_string(value); };
      return {set("data.batch_size=", batch_size()),  set("optimizer.accumulate=", accumulate),
              set("train.micro_batch=", micro_batch), set("train.passes=", passes),
              set("train.threads=", threads),         "data.test_batch_size=1"};
    }
    friend void PrintTo(const Division& one, std::ostream* out) {
      *out << ::testing::PrintToString(one.ranks) << " ranks: ";
      for (const auto& setting : one.settings()) *out << setting << " ";
    }
  };

  struct Trained {
    double loss = 0;  // of the first step
    int images = 0;   // of all steps
    std::string weights, momentum;
  };

  /// Returns the file of the lost image, in a data set made once for each `loss`.
  fs::path lost_image(const std::string& loss) const {
    const auto root = data_of(loss);
    const auto annotations = root / "annotations" / "instances_train2017.json";
    const bool is_new = !fs::exists(root);
    if (is_new)
      successful(
          trainer({"sample", "--out", root, "--train", std::to_string(kImages), "--val", "1"}));
    auto json = read_json(annotations);
    const auto& image = json["images"][0];
    const auto file = root / "train2017" / image["file_name"].get<std::string>();
    if (!is_new) return file;
    if (loss != "filter") {
      fs::resize_file(file, fs::file_size(file) / 2);
      return file;
    }
    auto left = Json::array();  // this image keeps only one tiny object
    bool has_one = false;
    for (auto& object : json["annotations"]) {
      if (object["image_id"] == image["id"]) {
        if (std::exchange(has_one, true)) continue;
        object["bbox"] = {8, 8, 2, 2};
        object["segmentation"] = {{8, 8, 10, 8, 10, 10, 8, 10}};
        object["area"] = 4;
        object["iscrowd"] = 0;
      }
      left.push_back(object);
    }
    json["annotations"] = left;
    write_json(annotations, json);
    return file;
  }

  Outcome outcome_of(const Recipe& recipe, const Division& division, const fs::path& output) const {
    lost_image(recipe.loss);
    const auto own = with_settings(
        {"run", "configs/" + recipe.detector + ".toml", "--resume=auto", "--out", output},
        Words{
            setting("data.root", data_of(recipe.loss)), "data.short_side=64", "data.max_side=96",
            "data.aspect_grouping=false", "data.max_skipped=0.5", "train.epochs=1000",
            "train.max_steps=" + std::to_string(recipe.steps),
            recipe.detector == "yolox" ? "schedule.warmup='1 epoch'" : "schedule.warmup='2 steps'",
            "callbacks.log.every='1 steps'", "callbacks.checkpoint.every='1 steps'"} +
            of_loss(recipe.loss) + division.settings() + kTrainOnly + recipe.settings);
    return division.ranks == 1 ? trainer(own) : ranks(division.ranks, MILLRACE_TRAINER, own);
  }

  Trained train(const Recipe& recipe, const Division& division,
                const std::string& name = "run") const {
    const auto output = in_folder(name);
    successful(outcome_of(recipe, division, output));
    const auto checkpoint = last_checkpoint(output);
    if (checkpoint.empty()) return {};
    const auto metrics = json_lines(checkpoint.parent_path().parent_path() / "metrics.jsonl");
    return {metrics.at(0).at("loss"), read_json(checkpoint / "state.json").at("state").at("images"),
            read_text(checkpoint / "model.safetensors"),
            read_text(checkpoint / "optimizer.safetensors")};
  }

  /// Expects each step to use the remaining images; the expected loss is that of the undivided
  /// batch.
  void expect_step(const Recipe& recipe, const Division& division) const {
    SCOPED_TRACE(recipe.detector + ", " + recipe.loss + ", " + ::testing::PrintToString(division));
    const auto own = train(recipe, division);
    fs::remove_all(in_folder("run"));
    EXPECT_EQ(own.images, recipe.steps * (kImages - (recipe.loss == "replace" ? 0 : 1)));
    EXPECT_TRUE(std::isfinite(own.loss));
    if (division.passes > 1) return;  // batch norm normalises each pass separately
    const auto whole = train(recipe, {.accumulate = division.accumulate});
    fs::remove_all(in_folder("run"));
    EXPECT_NEAR(own.loss, whole.loss, 0.01 * whole.loss);
  }

  void expect_failure(const Recipe& recipe, const Division& division) const {
    SCOPED_TRACE(recipe.detector + ", " + ::testing::PrintToString(division));
    const auto outcome = outcome_of(recipe, division, in_folder("run"));
    fs::remove_all(in_folder("run"));
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.err, HasSubstr(lost_image(recipe.loss).filename().string()));
  }

 private:
  fs::path data_of(const std::string& loss) const {
    return in_folder(loss == "filter" ? "filtered" : "broken");
  }

  static Words of_loss(const std::string& loss) {
    if (loss == "fail") return {"data.on_error='fail'", "data.max_skipped=0.1"};
    if (loss != "filter") return {"data.on_error='" + loss + "'"};
    return {
        "data.stages=[{type='read'}, {type='decode'}, "
        "{type='filter', min_objects=1, min_object_side=4}, {type='flip'}, "
        "{type='resize_shortest_edge'}, {type='group_by_aspect_ratio'}, {type='pad'}]"};
  }
};

}  // namespace millrace::testing
