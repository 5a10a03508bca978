// Stages that crop, warp and mix: their random parameters, and that pixels and objects undergo the
// same transform.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <opencv2/imgproc.hpp>
#include <set>
#include <stdexcept>

#include "millrace/base/errors.h"
#include "millrace/dataflow/detection/detection_stages.h"
#include "millrace/dataflow/detection/transforms.h"
#include "millrace/dataflow/stages/crops.h"
#include "millrace/dataflow/stages/geometric.h"
#include "millrace/dataflow/stages/mixing.h"
#include "tests/dataflow/flows.h"
#include "tests/dataflow/samples.h"
#include "tests/dataflow/tiny_coco.h"
#include "tests/support/thrown.h"

namespace millrace {
namespace {

using namespace ::testing;
using namespace testing;

using Cut = RandomCrop::Type;

/// Replaces a sample's pixels by the mask of one of its objects, 255 inside.
Sample painted(Sample sample, std::size_t object) {
  const cv::Size size(sample.width, sample.height);
  const auto mask = rasterised(sample.objects.segmentations[object], size);
  cv::Mat levels(size, CV_8U);
  coco::decode(mask, levels.ptr());
  cv::cvtColor(levels * 255, sample.image.pixels(), cv::COLOR_GRAY2RGB);
  sample.objects = only(sample.objects, object);
  return sample;
}

/// Returns the mask that the pixels show.
coco::Rle shown(const cv::Mat& image) {
  cv::Mat level;
  cv::extractChannel(image, level, 0);
  level = level > 127;
  return coco::encode(level.ptr(), static_cast<std::uint32_t>(image.rows),
                      static_cast<std::uint32_t>(image.cols));
}

/// Applies a stage to real objects painted as pixels and expects the pixels to match the object's
/// mask afterwards.
template <class Stage>
void expect_masks_follow_pixels(const Stage& stage) {
  Rng rng{11};
  int seen = 0;
  for (const auto& sample : real_samples(4))
    for (std::size_t i = 0; i < sample.objects.size(); ++i) {
      const auto result = stage(painted(sample, i), rng);
      expect_sound(result.objects, result.image.size());
      const auto expected = shown(result.image.pixels());
      if (coco::area(expected) < 1000) continue;
      ASSERT_EQ(result.objects.size(), 1U);
      EXPECT_GT(iou(rasterised(result.objects.segmentations[0], result.image.size()), expected),
                0.9)
          << sample.path << ", object " << i;
      ++seen;
    }
  EXPECT_GT(seen, 50);
}

TEST(Augmentations, TransformMasksWithPixels) {
  MILLRACE_NEEDS_DATA("coco_mini");
  expect_masks_follow_pixels(RandomCrop{});
  expect_masks_follow_pixels(FixedSizeCrop{.width = 400, .height = 500, .pad_value = 0});
  expect_masks_follow_pixels(
      LargeScaleJitter{.min_scale = 0.5, .target = {.width = 500, .height = 400, .pad_value = 0}});
  expect_masks_follow_pixels(Affine{.rotation = 20,
                                    .min_scale = 0.7,
                                    .max_scale = 1.5,
                                    .translation = 0.1,
                                    .shear = 5,
                                    .fill = 0});
  expect_masks_follow_pixels(Flip{.probability = 1});
  expect_masks_follow_pixels(Flip{.probability = 1, .direction = Direction::vertical});
}

TEST(RandomCrop, MatchesDetectron2Sizes) {
  Rng rng{1};
  const cv::Size image(100, 60);
  EXPECT_EQ((RandomCrop{.crop_type = Cut::relative, .size = {0.5, 0.25}}.draw_size(image, rng)),
            cv::Size(50, 15));
  EXPECT_EQ((RandomCrop{.crop_type = Cut::absolute, .size = {80, 80}}.draw_size(image, rng)),
            cv::Size(80, 60));
  std::set<int> widths, heights;
  for (int i = 0; i < 2000; ++i) {
    const auto range =
        RandomCrop{.crop_type = Cut::absolute_range, .size = {58, 62}}.draw_size(image, rng);
    widths.insert(range.width);
    heights.insert(range.height);
    const auto share =
        RandomCrop{.crop_type = Cut::relative_range, .size = {0.3, 0.9}}.draw_size(image, rng);
    EXPECT_TRUE(share.width >= 30 && share.width <= 100 && share.height >= 54 &&
                share.height <= 60);
  }
  EXPECT_THAT(widths, ElementsAre(58, 59, 60, 61, 62));
  EXPECT_THAT(heights, ElementsAre(58, 59, 60));
}

TEST(RandomCrop, CropsToDrawnWindow) {
  const RandomCrop stage{.crop_type = Cut::absolute, .size = {20, 10}};
  for (std::uint64_t i = 0; i < 50; ++i) {
    Rng one{2, i}, two{2, i};
    const auto window = stage.draw(sample_of(100, 60, {40, 30, 50, 40}), one);
    const auto result = stage(sample_of(100, 60, {40, 30, 50, 40}), two);
    ASSERT_EQ(result.image.size(), cv::Size(20, 10));
    EXPECT_EQ(result.image.pixels().at<cv::Vec3b>(0, 0)[0], window.x + 1);
    EXPECT_EQ(result.image.pixels().at<cv::Vec3b>(0, 0)[1], window.y + 1);
    EXPECT_EQ(result.scale_x, 1);
    EXPECT_TRUE(window.x <= 45 && window.x + 20 >= 45 && window.y <= 35 && window.y + 10 >= 35)
        << "the centre of the only object";
  }
}

TEST(RandomCrop, KeepsAtLeastOneObject) {
  MILLRACE_NEEDS_DATA("coco_mini");
  Rng rng{3};
  const RandomCrop keeps{
      .crop_type = Cut::relative, .size = {0.2, 0.2}, .visibility = {.min_area = 50}};
  auto any = keeps;
  any.keep_object = false;
  int lost = 0;
  for (const auto& sample : real_photos(4)) {
    const auto count = [](const Sample& s) { return std::ranges::count(s.objects.crowd, 0); };
    if (count(sample) == 0) continue;
    for (int round = 0; round < 5; ++round) {
      EXPECT_GT(count(keeps(sample, rng)), 0) << sample.path;
      lost += count(any(sample, rng)) == 0;
    }
  }
  EXPECT_GT(lost, 0) << "without keep_object, some crops must contain no object";
}

TEST(RandomCrop, CropsEmptyImagesAnywhere) {
  std::set<int> left;
  for (std::uint64_t i = 0; i < 300; ++i) {
    Rng rng{4, i};
    auto sample = sample_of(12, 12);
    sample.objects = {};
    left.insert(RandomCrop{.crop_type = Cut::absolute, .size = {8, 8}}.draw(sample, rng).x);
  }
  EXPECT_THAT(left, ElementsAre(0, 1, 2, 3, 4));
}

TEST(RandomCrop, RejectsInvalidSizes) {
  const auto refusal = [](Cut type, Options::Reals size) {
    return message_of<std::invalid_argument>(
        [&] { RandomCrop{.crop_type = type, .size = std::move(size)}.check(); });
  };
  EXPECT_THAT(refusal(Cut::relative, {0.5}), HasSubstr("two values"));
  EXPECT_THAT(refusal(Cut::relative, {0.5, 1.5}), HasSubstr("at most 1"));
  EXPECT_THAT(refusal(Cut::relative_range, {0, 1}), HasSubstr("above 0"));
  EXPECT_THAT(refusal(Cut::absolute, {10, 0.5}), HasSubstr("whole pixels"));
  EXPECT_THAT(refusal(Cut::absolute_range, {20, 10}), HasSubstr("[lowest, highest]"));
}

TEST(FixedSizeCrop, CropsLongAndPadsShortSides) {
  Rng rng{5};
  const FixedSizeCrop stage{.width = 20, .height = 40, .pad_value = 7};
  const auto result = stage(sample_of(30, 25, {0, 0, 30, 25}), rng);
  ASSERT_EQ(result.image.size(), cv::Size(20, 40));
  const int left = result.image.pixels().at<cv::Vec3b>(0, 0)[0] - 1;
  EXPECT_TRUE(left >= 0 && left <= 10);
  EXPECT_EQ(result.image.pixels().at<cv::Vec3b>(24, 19), (cv::Vec3b(left + 20, 25, 255)));
  EXPECT_EQ(result.image.pixels().at<cv::Vec3b>(25, 0), (cv::Vec3b{7, 7, 7}));
  EXPECT_THAT(result.objects.boxes, ElementsAre(Box{0, 0, 20, 25}));
}

TEST(LargeScaleJitter, FitsImageIntoScaledTarget) {
  Rng rng{6};
  const LargeScaleJitter half{
      .min_scale = 0.5, .max_scale = 0.5, .target = {.width = 100, .height = 200}};
  EXPECT_EQ(half.draw({40, 20}, rng), cv::Size(50, 25));
  EXPECT_EQ(half.draw({20, 80}, rng), cv::Size(25, 100));
  const auto result = half(sample_of(40, 20, {4, 2, 8, 6}), rng);
  EXPECT_EQ(result.image.size(), cv::Size(100, 200));
  EXPECT_EQ(result.scale_x, 1.25F);
  EXPECT_THAT(result.objects.boxes, ElementsAre(Box{5, 2.5, 10, 7.5}));
  EXPECT_EQ(result.image.pixels().at<cv::Vec3b>(25, 0), (cv::Vec3b{128, 128, 128}));
  int least = 1000, greatest = 0;
  for (int i = 0; i < 500; ++i) {
    const LargeScaleJitter stage{.target = {.width = 100, .height = 100}};
    const int width = stage.draw({30, 30}, rng).width;
    least = std::min(least, width), greatest = std::max(greatest, width);
  }
  EXPECT_TRUE(least >= 10 && least < 14) << least;
  EXPECT_TRUE(greatest <= 200 && greatest > 195) << greatest;
}

TEST(Augmentations, KeepImageForNeutralOptions) {
  Rng rng{7};
  const auto before = sample_of(31, 24);
  for (const auto& after :
       {Affine{}(sample_of(31, 24), rng),
        FixedSizeCrop{.width = 31, .height = 24}(sample_of(31, 24), rng),
        Mosaic{}(sample_of(31, 24), {}, rng), CopyPaste{}(sample_of(31, 24), {}, rng)}) {
    EXPECT_TRUE(same(after.image.pixels(), before.image.pixels()));
    EXPECT_TRUE(same(after.objects, before.objects));
  }
}

TEST(Affine, ShiftsByWholePixelsExactly) {
  auto sample = sample_of(40, 30, {10, 10, 20, 20});
  warp(sample, {1, 0, 5, 0, 1, -3}, /*fill=*/9, Visibility{});
  EXPECT_EQ(sample.image.pixels().at<cv::Vec3b>(0, 5), (cv::Vec3b{1, 4, 255}));
  EXPECT_EQ(sample.image.pixels().at<cv::Vec3b>(26, 39), (cv::Vec3b{35, 30, 255}));
  EXPECT_EQ(sample.image.pixels().at<cv::Vec3b>(0, 4), (cv::Vec3b{9, 9, 9}));
  EXPECT_EQ(sample.image.pixels().at<cv::Vec3b>(27, 10), (cv::Vec3b{9, 9, 9}));
  EXPECT_THAT(sample.objects.boxes, ElementsAre(Box{15, 7, 25, 17}));
}

TEST(Affine, QuarterTurnMatchesOpenCvRotation) {
  const auto matrix = Affine::matrix({.rotation = 90}, {20, 20}, {20, 20});
  auto sample = sample_of(20, 20);
  const auto before = sample.image.pixels().clone();
  warp(sample, matrix, 0, Visibility{});
  cv::Mat expected;
  cv::rotate(before, expected, cv::ROTATE_90_CLOCKWISE);
  EXPECT_TRUE(same(sample.image.pixels(), expected));
  EXPECT_NEAR(sample.objects.boxes[0].x1, 16, 1e-4);  // was {1, 2, 3, 4}
  EXPECT_NEAR(sample.objects.boxes[0].y1, 1, 1e-4);
  EXPECT_NEAR(sample.objects.boxes[0].x2, 18, 1e-4);
  EXPECT_NEAR(sample.objects.boxes[0].y2, 3, 1e-4);
}

TEST(Affine, DrawsWithinRanges) {
  Rng rng{8};
  const Affine stage{
      .rotation = 15, .min_scale = 0.5, .max_scale = 2, .translation = 0.1, .shear = 3};
  for (int i = 0; i < 1000; ++i) {
    const auto draw = stage.draw(rng);
    EXPECT_LE(std::abs(draw.rotation), 15);
    EXPECT_TRUE(draw.scale >= 0.5 && draw.scale < 2);
    EXPECT_LE(std::max(std::abs(draw.translate_x), std::abs(draw.translate_y)), 0.1);
    EXPECT_LE(std::max(std::abs(draw.shear_x), std::abs(draw.shear_y)), 3);
  }
}

TEST(Affine, CropsAroundCentre) {
  auto sample = sample_of(40, 30, {10, 10, 20, 20});
  Rng rng{8};
  const auto result = Affine{.width = 20, .height = 10}(std::move(sample), rng);
  ASSERT_EQ(result.image.size(), cv::Size(20, 10));
  auto whole = sample_of(40, 30);
  EXPECT_TRUE(same(result.image.pixels(), whole.image.pixels()({10, 10, 20, 10}).clone()));
  EXPECT_THAT(result.objects.boxes, ElementsAre(Box{0, 0, 10, 10}));
}

/// Returns a grey sample with one object, a rectangle given as a polygon.
Sample rectangle(cv::Size size, int level, Box box) {
  Sample sample = sample_of(size.width, size.height, box);
  sample.image.pixels() = cv::Scalar::all(level);
  sample.objects.segmentations[0] =
      std::vector<coco::Polygon>{{box.x1, box.y1, box.x2, box.y1, box.x2, box.y2, box.x1, box.y2}};
  return sample;
}

TEST(CopyPaste, PastesChosenObjectsOnTop) {
  const cv::Size size(40, 30);
  auto below = rectangle(size, 10, {0, 0, 20, 10});
  append(below.objects, rectangle(size, 10, {30, 20, 40, 30}).objects);  // not overlapped
  append(below.objects, rectangle(size, 10, {12, 2, 18, 8}).objects);    // hidden after the paste
  auto above = rectangle(size, 200, {10, 0, 20, 20});
  append(above.objects, rectangle(size, 200, {0, 20, 5, 25}).objects);  // not chosen
  above.objects.classes = {5, 6};
  const auto untouched = only(below.objects, 1);

  const auto result = CopyPaste{}.paste(below, above, {true, false});

  EXPECT_THAT(result.objects.boxes,
              ElementsAre(Box{0, 0, 10, 10}, Box{30, 20, 40, 30}, Box{10, 0, 20, 20}));
  EXPECT_THAT(result.objects.classes, ElementsAre(0, 0, 5));
  EXPECT_EQ(
      std::get<coco::Rle>(result.objects.segmentations[0]),
      (coco::from_polygons(std::vector<coco::Polygon>{{0, 0, 10, 0, 10, 10, 0, 10}}, 30, 40)));
  EXPECT_TRUE(same(only(result.objects, 1), untouched));
  EXPECT_EQ(result.image.pixels().at<cv::Vec3b>(0, 9)[0], 10);
  EXPECT_EQ(result.image.pixels().at<cv::Vec3b>(0, 10)[0], 200);
  EXPECT_EQ(result.image.pixels().at<cv::Vec3b>(19, 19)[0], 200);
  EXPECT_EQ(result.image.pixels().at<cv::Vec3b>(22, 2)[0], 10)
      << "objects that were not chosen must not be pasted";
}

TEST(CopyPaste, TakesPixelsOfRealObjects) {
  MILLRACE_NEEDS_DATA("coco_mini");
  Rng rng{12};
  const auto photos = real_photos(8);
  for (std::size_t i = 0; i + 1 < photos.size(); ++i) {
    const auto& sample = photos[i];
    const auto size = sample.image.size();
    Rng again = rng;
    auto given = sample;
    given.image = sample.image.pixels().clone();
    const auto result = CopyPaste{.probability = 1}(given, {photos[i + 1]}, rng);
    expect_sound(result.objects, size);

    const FixedSizeCrop fit{.width = size.width, .height = size.height};
    const auto other = fit(photos[i + 1], again);
    const auto chosen = CopyPaste{}.draw(other.objects, again);
    cv::Mat expected = sample.image.pixels().clone();
    for (std::size_t k = 0; k < chosen.size(); ++k) {
      if (!chosen[k]) continue;
      cv::Mat mask(size, CV_8U);
      coco::decode(rasterised(other.objects.segmentations[k], size), mask.ptr());
      other.image.pixels().copyTo(expected, mask);
    }
    EXPECT_TRUE(same(result.image.pixels(), expected));
  }
}

TEST(CopyPaste, SkipsCrowdsAndObjectsWithoutShape) {
  Rng rng{13};
  Instances objects;
  for (int i = 0; i < 3; ++i) append(objects, rectangle({40, 30}, 0, {0, 0, 9, 9}).objects);
  objects.crowd[0] = 1;
  objects.segmentations[1] = {};
  for (int i = 0; i < 50; ++i)
    EXPECT_THAT(CopyPaste{}.draw(objects, rng), ElementsAre(false, false, true));
  filter_objects(objects, {true, true, false});
  EXPECT_THAT(CopyPaste{}.draw(objects, rng), ElementsAre(false, false));
}

TEST(CopyPaste, DropsObjectsWithoutPixels) {
  auto other = rectangle({40, 30}, 200, {10.6F, 5, 11.4F, 25});  // between two pixel centres
  append(other.objects, rectangle({40, 30}, 200, {20, 5, 22, 25}).objects);
  const auto result = CopyPaste{}.paste(rectangle({40, 30}, 10, {0, 0, 5, 5}), other, {true, true});
  EXPECT_THAT(result.objects.boxes, ElementsAre(Box{0, 0, 5, 5}, Box{20, 5, 22, 25}));
}

TEST(CopyPaste, HandlesPartnerOfDifferentSize) {
  Rng rng{14};
  const auto result = CopyPaste{.probability = 1}(rectangle({40, 30}, 10, {0, 0, 5, 5}),
                                                  {rectangle({100, 8}, 200, {0, 0, 100, 8})}, rng);
  EXPECT_EQ(result.image.size(), cv::Size(40, 30));
  EXPECT_THAT(result.objects.boxes, ElementsAre(Box{0, 0, 40, 8})) << "the object below is hidden";
  EXPECT_EQ(result.image.pixels().at<cv::Vec3b>(7, 39)[0], 200);
  EXPECT_EQ(result.image.pixels().at<cv::Vec3b>(8, 39)[0], 10);
}

TEST(Mosaic, PlacesFourImagesAroundCentre) {
  const Mosaic stage{.width = 40, .height = 40, .pad_value = 7};
  const cv::Size size(40, 20);
  std::vector<Sample> four;
  for (const int level : {50, 100, 150, 200})
    four.push_back(rectangle(size, level, {0, 0, 40, 20}));
  const auto result = stage.join(four, {30, 50});
  ASSERT_EQ(result.image.size(), cv::Size(80, 80));
  const auto level = [&](int x, int y) {
    return int{result.image.pixels().at<cv::Vec3b>(y, x)[0]};
  };
  EXPECT_EQ(level(29, 49), 50);
  EXPECT_EQ(level(30, 49), 100);
  EXPECT_EQ(level(29, 50), 150);
  EXPECT_EQ(level(30, 50), 200);
  EXPECT_EQ(level(29, 29), 7);
  EXPECT_EQ(level(30, 70), 7);
  EXPECT_THAT(result.objects.boxes, ElementsAre(Box{0, 30, 30, 50}, Box{30, 30, 70, 50},
                                                Box{0, 50, 30, 70}, Box{30, 50, 70, 70}));
}

TEST(Mosaic, KeepsRealPhotosValid) {
  MILLRACE_NEEDS_DATA("coco_mini");
  Rng rng{15};
  const auto photos = real_photos(8);
  const Mosaic stage{.width = 320, .height = 240};
  for (std::size_t i = 0; i + 3 < photos.size(); ++i) {
    const auto result = stage(photos[i], {photos[i + 1], photos[i + 2], photos[i + 3]}, rng);
    EXPECT_EQ(result.image.size(), cv::Size(640, 480));
    EXPECT_EQ(result.image_id, photos[i].image_id);
    expect_sound(result.objects, result.image.size());
  }
}

TEST(MixUp, BlendsImagesAndKeepsAllObjects) {
  Rng rng{4};
  const MixUp stage{.min_scale = 0.5, .max_scale = 0.5};
  const auto result = stage(rectangle({40, 20}, 100, {0, 0, 40, 20}),
                            {rectangle({80, 40}, 200, {0, 0, 80, 40})}, rng);
  ASSERT_EQ(result.image.size(), cv::Size(40, 20));
  const auto level = [&](int x, int y) {
    return int{result.image.pixels().at<cv::Vec3b>(y, x)[0]};
  };
  EXPECT_EQ(level(19, 9), 150);
  EXPECT_EQ(level(20, 9), 50);
  EXPECT_EQ(level(19, 10), 50);
  EXPECT_THAT(result.objects.boxes, ElementsAre(Box{0, 0, 40, 20}, Box{0, 0, 20, 10}));
}

TEST(MixUp, CropsLargerPartner) {
  const MixUp stage{.min_scale = 1.5, .max_scale = 1.5};
  Rng rng{5};
  const auto result = stage(rectangle({40, 20}, 100, {1, 1, 9, 9}),
                            {rectangle({40, 20}, 200, {0, 0, 40, 20})}, rng);
  EXPECT_THAT(result.objects.boxes, ElementsAre(Box{1, 1, 9, 9}, Box{0, 0, 40, 20}));
  EXPECT_EQ(cv::mean(result.image.pixels())[0], 150);
  auto empty = sample_of(4, 4);
  empty.objects = {};
  EXPECT_EQ(stage.partners(empty, rng), 0U);
}

TEST(MixingStages, RequestPartnersWithGivenProbability) {
  int paste = 0, mosaic = 0;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    Rng rng{17, i};
    const auto sample = sample_of(4, 4);
    paste += CopyPaste{.probability = 0.3}.partners(sample, rng) == 1;
    mosaic += Mosaic{.probability = 0.6}.partners(sample, rng) == 3;
  }
  EXPECT_NEAR(paste, 600, 80);
  EXPECT_NEAR(mosaic, 1200, 80);
}

/// A pipeline with every augmentation stage.
constexpr const char* kEverything = R"(stages = [
    { type = "read" }, { type = "decode" },
    { type = "random_crop", crop_type = "relative_range", size = [0.6, 0.6] },
    { type = "copy_paste", probability = 0.7 },
    { type = "mosaic", probability = 0.5, width = 60, height = 60 },
    { type = "affine", rotation = 20, min_scale = 0.8, max_scale = 1.2, shear = 3, min_visible = 0.1 },
    { type = "mixup", probability = 0.5, until = 1 }, { type = "hsv_shift" },
    { type = "color_jitter", gamma = 0.2 }, { type = "grayscale" }, { type = "lighting" },
    { type = "blur" }, { type = "noise" },
    { type = "flip", direction = "vertical" },
    { type = "large_scale_jitter", width = 96, height = 64, min_scale = 0.5 },
    { type = "fixed_size_crop", width = 80, height = 64 },
    { type = "group_by_aspect_ratio" }, { type = "pad" } ])";

TEST(Augmentations, ProduceSameBytesForAnyThreadCount) {
  TinyCoco options(20);
  const auto stages = tables_of(kEverything);
  const auto given = [&](int threads) {
    options.threads = threads;
    const auto flow = train_flow(options, stages);
    const auto result = digests(*flow, 30);
    EXPECT_EQ(flow->report().skipped, 0);
    return result;
  };
  const auto expected = given(1);
  EXPECT_EQ(std::set(expected.begin(), expected.end()).size(), expected.size());
  EXPECT_EQ(given(2), expected);
  EXPECT_EQ(given(8), expected);
}

TEST(Augmentations, RejectContradictoryOptions) {
  const TinyCoco options(4);
  const auto refuses = [&](const std::string& stage, const std::string& why) {
    EXPECT_THAT([&] { train_flow(options, pipeline("\n{ " + stage + " }, ")); },
                ThrowsMessage<ConfigError>(AllOf(HasSubstr("test.toml:2"), HasSubstr(why))))
        << stage;
  };
  refuses(R"(type = "random_crop", size = [0.5, 2])", "random_crop: size");
  refuses(R"(type = "random_crop", crop_type = "square")", "crop_type");
  refuses(R"(type = "large_scale_jitter", min_scale = 3)", "large_scale_jitter: min_scale = 3 ");
  refuses(R"(type = "affine", min_scale = 1.5)", "affine: min_scale = 1.5 ");
  refuses(R"(type = "blur", max_sigma = 0.05)", "blur: min_sigma = 0.1 ");
  refuses(R"(type = "mosaic", min_center = 1.8)", "mosaic: min_center = 1.8 ");
  refuses(R"(type = "affine", rotation = 200)", "rotation = 200 ");
  refuses(R"(type = "flip", direction = "up")", "direction");
}

TEST(Augmentations, RejectImagesNotYetDecoded) {
  Rng rng{18};
  Sample sample = sample_of(4, 4);
  sample.image = cv::Mat();
  const auto wants = [](const char* stage) {
    return ThrowsMessage<std::logic_error>(
        HasSubstr(std::string(stage) + ": needs a decoded image"));
  };
  EXPECT_THAT([&] { RandomCrop{}(sample, rng); }, wants("random_crop"));
  EXPECT_THAT([&] { FixedSizeCrop{}(sample, rng); }, wants("fixed_size_crop"));
  EXPECT_THAT([&] { LargeScaleJitter{}(sample, rng); }, wants("large_scale_jitter"));
  EXPECT_THAT([&] { Affine{}(sample, rng); }, wants("affine"));
  EXPECT_THAT([&] { Flip{.probability = 1}(sample, rng); }, wants("flip"));
  EXPECT_THAT([&] { CopyPaste{}(sample, {sample_of(4, 4)}, rng); }, wants("copy_paste"));
}

TEST(Augmentations, AcceptOnePixelImages) {
  Rng rng{19};
  const auto tiny = [] { return sample_of(1, 1, {0, 0, 1, 1}); };
  EXPECT_EQ(RandomCrop{}(tiny(), rng).image.size(), cv::Size(1, 1));
  EXPECT_EQ((FixedSizeCrop{.width = 5, .height = 5}(tiny(), rng).image.size()), cv::Size(5, 5));
  EXPECT_EQ((LargeScaleJitter{.target = {.width = 9, .height = 9}}(tiny(), rng).image.size()),
            cv::Size(9, 9));
  EXPECT_EQ((Affine{.rotation = 30}(tiny(), rng).image.size()), cv::Size(1, 1));
  EXPECT_EQ(Mosaic{}(tiny(), {tiny(), tiny(), tiny()}, rng).image.size(), cv::Size(1280, 1280));
}

}  // namespace
}  // namespace millrace
