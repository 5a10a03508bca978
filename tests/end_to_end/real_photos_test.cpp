// Overfits twenty real photos, starting from ImageNet weights. Takes minutes, so it is labelled
// slow.
#include <iostream>

#include "tests/end_to_end/training.h"
#include "tests/support/data.h"

namespace millrace::testing {
namespace {

using RealPhotos = Training;

/// Makes a COCO folder of the first `count` photos that have 1 to 12 objects and no crowd
/// annotation.
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

TEST_F(RealPhotos, ReachesHighApOnTwentyPhotos) {
  MILLRACE_NEEDS_DATA("coco_mini");
  MILLRACE_NEEDS_DATA("weights");
  const auto data = in_folder("photos");
  make_subset(data_folder() / "coco_mini", data, 20);
  const auto weights =
      data_folder() / "weights" / "R18_C1-C4_imagenet_torchvision_bnfolded_fp16.npz";
  const auto scores =
      scores_after("configs/real_photos.toml",
                   {setting("data.root", data), setting("model.weights", fs::absolute(weights))});
  std::cout << "box AP " << ap(scores, "bbox") << ", mask AP " << ap(scores, "segm") << "\n";
  EXPECT_GT(ap(scores, "bbox"), 0.8);
  EXPECT_GT(ap(scores, "segm"), 0.8);
}

}  // namespace
}  // namespace millrace::testing
