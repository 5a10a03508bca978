// Handmade run folders on a small sample data set.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "millrace/base/files.h"
#include "millrace/base/random.h"
#include "millrace/coco/data/detections.h"
#include "millrace/coco/sample/sample.h"
#include "tests/support/scratch.h"

namespace millrace::testing {

constexpr int kImages = 12;

/// A data set, and run folders with the files that a training run writes.
class RunFolders {
 public:
  RunFolders() {
    coco::make_sample(data(), {.train = 1, .val = kImages, .seed = 3});
    truth_ = coco::read_dataset(data() / "annotations" / "instances_val2017.json");
  }

  std::filesystem::path data() const { return scratch_ / "photos"; }
  std::filesystem::path folder(const std::string& name) const { return scratch_ / name; }
  const std::shared_ptr<const coco::Dataset>& truth() const { return truth_; }

  /// Makes the folder of a finished run with an evaluation after step 40.
  std::filesystem::path make_run(const std::string& name, double error = 10,
                                 bool masks = false) const {
    const auto run = folder(name);
    std::filesystem::create_directories(run / "detections");
    write(run / "config.toml",
          fmt::format("[data]\nroot = \"photos\"\nval = \"val2017\"\nclasses = []\n\n[optimizer]\n"
                      "lr = {}\n",
                      error / 1000));
    write(run / "record.json",
          fmt::format(R"({{"format": 1, "name": "test", "starts": [{{"time": "2026-01-01T00:00:00Z",
 "command": ["trainer", "run", "<b>.toml"], "directory": "{}", "program": "trainer 0",
 "versions": {{"libtorch": "2.11.0"}}, "ranks": [{{"rank": 0, "host": "h", "device": "cpu",
 "processor": "a processor"}}],
 "ended": {{"time": "2026-01-01T00:01:00Z", "step": 40, "reason": "done"}}}}]}})",
                      scratch_.path().string()));
    std::string lines;
    for (const int step : {20, 40})
      lines += fmt::format(
          "{{\"step\":{},\"epoch\":{},\"time\":{},\"loss\":{},\"lr\":0.01,"
          "\"time/images_per_s\":12.5,\"time/step_s\":0.5}}\n",
          step, step / 40., 1767225600 + step, 40. / step);
    write(run / "metrics.jsonl", lines);
    coco::write_detections(run / "detections" / "step-000040.json", detections(error, masks));
    return run;
  }

  /// Returns the annotations as detections: each box is moved at random, one in eight has a
  /// different class, some are missing.
  coco::Detections detections(double error, bool masks) const {
    coco::Detections found;
    for (const auto& object : truth_->annotations) {
      Rng rng{7, static_cast<std::uint64_t>(object.id)};
      if (rng.chance(.1)) continue;
      coco::Detection one{.image_id = object.image_id, .category_id = object.category_id};
      one.bbox.emplace();
      for (std::size_t k = 0; k < 4; ++k)
        (*one.bbox)[k] = object.bbox[k] + (k < 2 ? error * rng.normal() * .2 : 0);
      if (rng.chance(.125)) one.category_id = truth_->categories[0].id;
      one.score = rng.uniform();
      const auto& image = *truth_->find_image(object.image_id);
      if (masks)
        one.mask =
            coco::mask_of(truth_->segmentation(object), static_cast<std::uint32_t>(image.height),
                          static_cast<std::uint32_t>(image.width));
      found.add(one);
    }
    return found;
  }

  static void write(const std::filesystem::path& file, const std::string& text) {
    write_file_atomically(file, text);
  }

 private:
  Scratch scratch_;
  std::shared_ptr<const coco::Dataset> truth_;
};

}  // namespace millrace::testing
