// Small models trained for a few steps, and photos for detection.
#pragma once

#include <opencv2/core.hpp>
#include <string>

#include "millrace/base/random.h"
#include "tests/cli/trainer.h"
#include "tests/end_to_end/training.h"
#include "tests/support/exif.h"
#include "tests/support/pictures.h"

namespace millrace::testing {

/// Returns a BGR noise image in which all regions differ.
inline cv::Mat noise(int width, int height) {
  Rng rng{static_cast<std::uint64_t>(width), static_cast<std::uint64_t>(height)};
  cv::Mat coarse(height / 8 + 1, width / 8 + 1, CV_8UC3), fine;
  for (auto& level : cv::Mat_<cv::Vec3b>(coarse))
    for (int c = 0; c < 3; ++c) level[c] = static_cast<std::uint8_t>(rng.below(256));
  cv::resize(coarse, fine, {width, height}, 0, 0, cv::INTER_LINEAR);
  return fine;
}

class Trained : public Training {
 protected:
  /// Returns settings that make `configs/NAME.toml` small and fast, and detect many objects in any
  /// image.
  Words small() const {
    return {setting("data.root", make_data()),
            "data.short_side=96",
            "data.max_side=160",
            "data.test_short_side=0",
            "data.test_max_side=0",
            "data.batch_size=2",
            "data.train='val2017'",
            "model.backbone.width=16",
            "model.test.score_thresh=0.001",
            "model.test.detections_per_img=20",
            "schedule.warmup='0 steps'",
            "train.epochs=1"};
  }

  /// Trains for two steps and returns the checkpoint folder.
  fs::path train(const std::string& config) const {
    const auto output = in_folder("runs");
    successful(trainer(with_settings({"run", config, "--out", output}, small() + kTrainOnly)));
    return last_checkpoint(output);
  }

  /// Writes JPEGs that cover all ways of decoding, rotating (EXIF 1 to 8) and padding, and two
  /// PNGs. Returns their folder.
  fs::path make_photos() const {
    const auto folder = in_folder("photos");
    fs::create_directories(folder);
    const auto jpeg = [](int width, int height) { return encoded(".jpg", noise(width, height)); };
    write_text(folder / "a_wide.jpg", jpeg(150, 100));
    write_text(folder / "b_tall.jpg", jpeg(90, 131));
    write_text(folder / "c_reduced.jpg", jpeg(640, 400));
    write_text(folder / "d_on_its_side.jpg", with_orientation(jpeg(400, 320), 6));
    write_text(folder / "e_upside_down.jpg", with_orientation(jpeg(200, 128), 3));
    write_text(folder / "f_square_turned.jpg", with_orientation(jpeg(128, 128), 8));
    write_text(folder / "g_thin.jpg", jpeg(300, 7));
    write_text(folder / "h.png", encoded(".png", noise(400, 256)));
    write_text(folder / "i_pixel.png", encoded(".png", noise(1, 1)));
    write_text(folder / "j_mirrored.jpg", with_orientation(jpeg(104, 80), 2));
    write_text(folder / "k_mirrored_upside_down.jpg", with_orientation(jpeg(80, 104), 4));
    write_text(folder / "l_square_transposed.jpg", with_orientation(jpeg(96, 96), 5));
    write_text(folder / "m_transposed_back.jpg", with_orientation(jpeg(112, 72), 7));
    return folder;
  }
};

}  // namespace millrace::testing
