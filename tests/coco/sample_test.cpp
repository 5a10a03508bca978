// The sample data set: the same bytes for the same seed, exact annotations, all kinds of objects.
#include "millrace/coco/sample/sample.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tbb/task_arena.h>

#include <fstream>
#include <map>
#include <set>
#include <span>
#include <string>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/random.h"
#include "millrace/coco/data/annotations.h"
#include "millrace/coco/masks/masks.h"
#include "millrace/coco/sample/sample_scene.h"
#include "millrace/coco/sample/sample_shapes.h"
#include "tests/support/pictures.h"
#include "tests/support/scratch.h"

namespace millrace::coco {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::Scratch;
using ::testing::ThrowsMessage;

/// Returns the contents of all files below a folder, by relative path.
std::map<std::string, std::string> bytes_of(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      files[fs::relative(entry.path(), folder).string()] = read_file(entry.path());
  return files;
}

std::map<std::string, std::string> make_with_threads(const fs::path& folder, int threads,
                                                     std::int64_t seed) {
  tbb::task_arena(threads).execute(
      [&] { make_sample(folder, {.train = 10, .val = 4, .seed = seed}); });
  return bytes_of(folder);
}

/// A generated data set of 100 training and 10 validation images.
class MadeSample : public ::testing::Test {
 protected:
  static constexpr std::int64_t kSeed = 5;

  static void SetUpTestSuite() {
    ground_ = new Scratch;
    make_sample(*ground_ / "sample", {.train = 100, .val = 10, .seed = kSeed});
  }
  static void TearDownTestSuite() { delete ground_; }

  static fs::path root() { return *ground_ / "sample"; }
  static std::shared_ptr<const Dataset> read(const std::string& split) {
    return read_dataset(root() / "annotations" / ("instances_" + split + ".json"));
  }
  static Rle mask_in(const Dataset& set, const Annotation& object, const Image& image) {
    return mask_of(set.segmentation(object), static_cast<std::uint32_t>(image.height),
                   static_cast<std::uint32_t>(image.width));
  }

 private:
  static inline Scratch* ground_ = nullptr;
};

TEST(Sample, DependsOnSeedNotThreadCount) {
  const Scratch ground;
  const auto one = make_with_threads(ground / "one", 1, 3);
  EXPECT_EQ(one.size(), 10u + 4u + 2u);
  EXPECT_TRUE(one == make_with_threads(ground / "two", 2, 3));
  EXPECT_TRUE(one == make_with_threads(ground / "three", 3, 3));
  const auto other = make_with_threads(ground / "other", 2, 4);
  for (const auto& [name, bytes] : one) EXPECT_NE(bytes, other.at(name)) << name;
}

TEST(Sample, SplitsAreIndependent) {
  const Scratch ground;
  make_sample(ground / "small", {.train = 3, .val = 3});
  make_sample(ground / "large", {.train = 6, .val = 3});
  EXPECT_TRUE(bytes_of(ground / "small" / "val2017") == bytes_of(ground / "large" / "val2017"));
  const auto file = fs::path("annotations") / "instances_val2017.json";
  EXPECT_EQ(read_file(ground / "small" / file), read_file(ground / "large" / file));
}

TEST(Sample, RejectsExistingFolder) {
  const Scratch ground;
  fs::create_directories(ground / "mine");
  std::ofstream(ground / "file") << "not a folder";
  for (const auto* name : {"mine", "mine/"})
    EXPECT_THAT([&] { make_sample(ground / name, {.train = 1, .val = 1}); },
                ThrowsMessage<ConfigError>(HasSubstr("mine: already exists")));
  EXPECT_THAT([&] { make_sample(ground / "file" / "sample", {.train = 1, .val = 1}); },
              ThrowsMessage<Error>(HasSubstr((ground / "file").string())));
  EXPECT_TRUE(fs::is_empty(ground / "mine"));
  EXPECT_EQ(bytes_of(ground.path()).size(), 1u);
}

TEST(Sample, RemovesLeftoversOfKilledRun) {
  const Scratch ground;
  fs::create_directories(ground / "sample.part" / "train2017");
  std::ofstream(ground / "sample.part" / "train2017" / "half.jpg") << "half";
  make_sample(ground / "sample", {.train = 1, .val = 1});
  EXPECT_FALSE(fs::exists(ground / "sample.part"));
  EXPECT_FALSE(fs::exists(ground / "sample" / "train2017" / "half.jpg"));
}

TEST_F(MadeSample, RecordsOptions) {
  EXPECT_EQ(sample_in(root()), (SampleOptions{.train = 100, .val = 10, .seed = kSeed}));
  EXPECT_EQ(sample_in(root() / "annotations"), std::nullopt);
}

TEST_F(MadeSample, ContainsValidFilesAndMasks) {
  std::set<std::int64_t> images, annotations;  // ids of both splits
  for (const std::string split : {"train2017", "val2017"}) {
    const auto dataset = read(split);
    EXPECT_EQ(dataset->images.size(), split == "val2017" ? 10u : 100u);
    for (const auto& image : dataset->images) {
      EXPECT_TRUE(images.insert(image.id).second) << image.id;
      const auto picture = testing::picture_in(root() / split / dataset->text(image.file_name));
      EXPECT_EQ(picture.size(), cv::Size(image.width, image.height)) << image.id;
      for (const auto& object : dataset->objects(image)) {
        EXPECT_TRUE(annotations.insert(object.id).second) << object.id;
        const auto mask = mask_in(*dataset, object, image);
        const auto box = bounding_box(mask);
        EXPECT_EQ(object.area, static_cast<double>(area(mask))) << object.id;
        EXPECT_THAT(object.bbox, ::testing::ElementsAre(box.x1, box.y1, box.width(), box.height()))
            << object.id;
      }
    }
  }
}

TEST_F(MadeSample, AnnotatesVisiblePixels) {
  const auto dataset = read("train2017");
  for (const auto& image : dataset->images) {
    Rng rng{kSeed, static_cast<std::uint64_t>(image.id)};
    const auto scene = plan_scene(rng);
    auto objects = dataset->objects(image);
    for (std::size_t i = 0; i < scene.things.size(); ++i) {
      if (!scene.things[i].kind) continue;
      ASSERT_FALSE(objects.empty());
      const auto& object = objects.front();
      const auto visible = scene.visible(i);
      const auto said = mask_in(*dataset, object, image),
                 shown = encode(visible.data, said.height, said.width);
      const std::uint8_t crowd = 0;
      EXPECT_EQ(object.category_id, static_cast<std::int64_t>(*scene.things[i].kind + 1));
      EXPECT_EQ(object.crowd, scene.things[i].crowd);
      EXPECT_GE(mask_iou({&said, 1}, {&shown, 1}, {&crowd, 1})[0], 0.97) << object.id;
      objects = objects.subspan(1);
    }
    EXPECT_TRUE(objects.empty());
  }
}

TEST_F(MadeSample, ContainsEveryKindOfObject) {
  const auto dataset = read("train2017");
  std::map<std::string, int> seen;
  std::set<std::pair<int, int>> sizes;
  for (const auto& image : dataset->images) {
    sizes.emplace(image.width, image.height);
    if (image.count == 0) ++seen["empty image"];
    if (image.count > 3) ++seen["busy image"];
    for (const auto& object : dataset->objects(image)) {
      const auto [x, y, width, height] = object.bbox;
      ++seen[object.crowd                           ? "crowd"
             : object.shape.kind == ShapeKind::mask ? "run lengths"
             : object.shape.count > 1               ? "parts"
                                                    : "polygon"];
      ++seen[object.area < 32 * 32 ? "small" : object.area < 96 * 96 ? "medium" : "large"];
      ++seen["category " + std::to_string(object.category_id)];
      if (x == 0 || y == 0 || x + width == image.width || y + height == image.height)
        ++seen["cut by the border"];
    }
  }
  EXPECT_GE(sizes.size(), 6u);
  EXPECT_EQ(dataset->categories.size(), kinds().size());
  for (std::size_t i = 1; i <= kinds().size(); ++i)
    EXPECT_GE(seen["category " + std::to_string(i)], 20);
  for (const auto* what : {"polygon", "parts", "run lengths", "small", "medium", "large",
                           "cut by the border", "busy image"})
    EXPECT_GE(seen[what], 8) << what;
  for (const auto* what : {"crowd", "empty image"}) EXPECT_GE(seen[what], 1) << what;
  EXPECT_GT(seen["medium"], seen["small"] + seen["large"]);
}

TEST(TraceBoundaries, TracesPartsAndHoles) {
  cv::Mat1b mask(5, 7, std::uint8_t{0});
  mask(cv::Rect(0, 1, 3, 3)) = 1;  // a ring around (1, 2), at the left border of the image
  mask(2, 1) = 0;
  mask(4, 3) = 1;  // touches the ring at a corner only
  const auto boundaries = trace_boundaries(mask);
  ASSERT_EQ(boundaries.size(), 3u);
  EXPECT_EQ(boundaries[0].points.size(), 12u);
  EXPECT_FALSE(boundaries[0].hole);
  EXPECT_TRUE(boundaries[1].hole);
  EXPECT_THAT(boundaries[2].points,
              ::testing::UnorderedElementsAre(cv::Point2f(3.5F, 4), cv::Point2f(4, 4.5F),
                                              cv::Point2f(3.5F, 5), cv::Point2f(3, 4.5F)));
}

}  // namespace
}  // namespace millrace::coco
