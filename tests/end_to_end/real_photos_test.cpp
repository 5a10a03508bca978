// Real photos and ImageNet weights: twenty photos are learned by heart. Minutes long, so labelled
// slow.
#include <chrono>
#include <iostream>

#include "tests/end_to_end/training.h"
#include "tests/support/data.h"

namespace millrace::testing {
namespace {

using RealPhotos = Training;

/// A COCO folder of the first `count` photos that have objects.
void make_subset(const fs::path& from, const fs::path& to, std::size_t count) {
  auto all = read_json(from / "annotations" / "instances_train2017.json");
  Json images = Json::array(), annotations = Json::array();
  for (const auto& image : all["images"]) {
    Json own = Json::array();
    bool crowd = false;
    for (const auto& annotation : all["annotations"]) {
      if (annotation["image_id"] != image["id"]) continue;
      crowd = crowd || annotation["iscrowd"] == 1;
      own.push_back(annotation);
    }
    if (own.empty() || own.size() > 12 || crowd) continue;
    images.push_back(image);
    annotations.insert(annotations.end(), own.begin(), own.end());
    if (images.size() == count) break;
  }
  all["images"] = images;
  all["annotations"] = annotations;
  fs::create_directories(to / "annotations");
  write_json(to / "annotations" / "instances_train2017.json", all);
  fs::create_directory_symlink(fs::absolute(from / "train2017"), to / "train2017");
}

TEST_F(RealPhotos, TwentyAreLearnedToAnApAboveEightTenths) {
  MILLRACE_NEEDS_DATA("coco_mini");
  MILLRACE_NEEDS_DATA("weights");
  const auto data = in_folder("photos"), output = in_folder("runs");
  make_subset(data_folder() / "coco_mini", data, 20);
  const auto weights =
      data_folder() / "weights" / "R18_C1-C4_imagenet_torchvision_bnfolded_fp16.npz";
  const std::vector<std::string> settings = {
      "data.root=\"" + data.string() + "\"",
      "model.weights=\"" + fs::absolute(weights).string() + "\""};

  const auto start = std::chrono::steady_clock::now();
  const auto run = trainer(
      with_settings({"run", "configs/real_photos.toml", "--output", output.string()}, settings));

  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto [box, mask] = training_ap(
      with_settings({"eval", "configs/real_photos.toml"}, settings), last_checkpoint(output));
  std::cout << "box AP " << box << ", mask AP " << mask << " after "
            << std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()
            << " s\n";
  EXPECT_GT(box, 0.8);
  EXPECT_GT(mask, 0.8);
}

}  // namespace
}  // namespace millrace::testing
