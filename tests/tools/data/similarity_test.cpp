// Detection of similar images: real photos, copies that were re-encoded, resized or mirrored, and
// frames of one scene.
#include "millrace/tools/data/similarity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <opencv2/imgproc.hpp>

#include "millrace/coco/data/records.h"
#include "millrace/dataflow/image/image_file.h"
#include "tests/support/data.h"
#include "tests/support/pictures.h"
#include "tests/support/scratch.h"

namespace millrace::advice {
namespace {

namespace fs = std::filesystem;
using ::testing::Each;
using ::testing::ElementsAre;

/// Returns the thumbprints of image files in a folder.
std::vector<Thumbprint> thumbprints_of(const fs::path& folder,
                                       const std::vector<std::string>& names) {
  coco::Records records;
  for (const auto& name : names)
    records.add_image(static_cast<std::int64_t>(records.images.size()) + 1, name, 1, 1);
  return compute_thumbprints({coco::assemble(std::move(records), "test"), folder, {}, {}}, [] {});
}

/// Returns an image of discs that depend on the seed, moved to the right by `shift` times the
/// width.
cv::Mat made_picture(int seed, cv::Size size = {320, 240}, double shift = 0) {
  cv::Mat picture(size, CV_8UC3, cv::Scalar(60, 70, 80));
  cv::RNG rng(static_cast<std::uint64_t>(seed) + 1);
  for (int i = 0; i < 12; ++i) {
    const cv::Scalar colour(rng.uniform(0, 255), rng.uniform(0, 255), rng.uniform(0, 255));
    const double x = rng.uniform(0., 1.), y = rng.uniform(0., 1.), side = rng.uniform(.05, .3);
    cv::circle(picture, cv::Point2d((x + shift) * size.width, y * size.height),
               static_cast<int>(side * size.height), colour, cv::FILLED);
  }
  return picture;
}

class Similarity : public ::testing::Test {
 protected:
  void save(const std::string& name, const cv::Mat& picture, int quality = 95) {
    fs::create_directories((folder_ / name).parent_path());
    testing::save_picture(folder_ / name, picture, quality);
    names_.push_back(name);
  }
  ImageGroups groups() const {
    return group_images(names_, thumbprints_of(folder_.path(), names_));
  }

  testing::Scratch folder_;
  std::vector<std::string> names_;
};

TEST_F(Similarity, GroupsReencodedResizedAndMirroredCopies) {
  const auto picture = made_picture(1);
  cv::Mat smaller, mirrored;
  cv::resize(picture, smaller, {}, .4, .4, cv::INTER_AREA);
  cv::flip(picture, mirrored, 1);
  save("a.png", picture);
  save("other.jpg", made_picture(2));
  save("b.jpg", picture, 40);
  save("c.jpg", smaller);
  save("third.jpg", made_picture(3));
  save("d.jpg", mirrored);
  const auto result = groups();
  EXPECT_THAT(result.group, ElementsAre(0, 1, 0, 0, 2, 0));
  EXPECT_EQ(result.copies, 3U);
  EXPECT_EQ(result.groups, 3U);
}

TEST_F(Similarity, GroupsFramesOfOneScene) {
  for (int clip = 0; clip < 3; ++clip)
    for (int frame = 0; frame < 5; ++frame)
      save("clip" + std::to_string(clip) + "_" + std::to_string(8 + frame) + ".jpg",
           made_picture(10 + clip, {320, 240}, .02 * frame));
  for (int photo = 0; photo < 6; ++photo)
    save("still" + std::to_string(photo) + ".jpg", made_picture(30 + photo));
  EXPECT_THAT(groups().group,
              ElementsAre(0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 4, 5, 6, 7, 8));
}

TEST_F(Similarity, IgnoresNumbersInFileNames) {
  for (int photo = 0; photo < 12; ++photo)
    save("IMG_" + std::to_string(100 + photo) + ".jpg", made_picture(50 + photo));
  EXPECT_EQ(groups().groups, 12U);
}

TEST_F(Similarity, GroupsExportsOfOneImage) {
  save("dog_jpg.rf.aaaa.jpg", made_picture(1));
  save("cat_jpg.rf.bbbb.jpg", made_picture(2));
  save("dog_jpg.rf.cccc.jpg", made_picture(3));
  EXPECT_THAT(groups().group, ElementsAre(0, 1, 0));
}

TEST_F(Similarity, SplitsOneVideoByFrameOrder) {
  for (int frame = 0; frame < 40; ++frame)
    save(std::to_string(frame) + ".jpg", made_picture(5, {320, 240}, .004 * frame));
  const auto result = groups();
  EXPECT_EQ(result.cut, 40U);
  EXPECT_EQ(result.groups, 10U);
  for (std::size_t i = 1; i < 40; ++i) EXPECT_LE(result.group[i - 1], result.group[i]);
}

TEST_F(Similarity, KeepsUnreadableFileInOwnGroup) {
  save("a.jpg", made_picture(1));
  folder_.file("b.jpg", "no image");
  folder_.file("c.jpg", "no image");
  names_.insert(names_.end(), {"b.jpg", "c.jpg", "missing.jpg"});
  EXPECT_EQ(groups().groups, 4U);
}

TEST(RealPhotos, AreGroupedOnlyIfCopies) {
  MILLRACE_NEEDS_DATA("coco_mini");
  const auto photos = images_in(testing::data_folder() / "coco_mini" / "train2017");
  testing::Scratch folder;
  std::vector<std::string> names;
  for (const auto& photo : photos) {
    const auto name = photo.filename().string();
    fs::create_symlink(fs::absolute(photo), folder / name);
    names.push_back(name);
  }
  const auto count = names.size();
  EXPECT_EQ(group_images(names, thumbprints_of(folder.path(), names)).groups, count);
  for (std::size_t i = 0; i < count; ++i) {
    cv::Mat smaller;
    cv::resize(testing::picture_in(photos[i]), smaller, {}, .5, .5, cv::INTER_AREA);
    if (i % 2 == 1) cv::flip(smaller, smaller, 1);
    names.push_back("copy" + std::to_string(i) + "x.jpg");
    testing::save_picture(folder / names.back(), smaller, 60);
  }
  const auto result = group_images(names, thumbprints_of(folder.path(), names));
  for (std::size_t i = 0; i < count; ++i)
    EXPECT_EQ(result.group[count + i], result.group[i]) << names[i];
  EXPECT_EQ(result.groups, count);
}

}  // namespace
}  // namespace millrace::advice
