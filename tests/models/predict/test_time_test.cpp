// The evaluation and the predictor make byte-identical batches.
#include "millrace/dataflow/detection/test_time.h"

#include <gtest/gtest.h>

#include "millrace/dataflow/detection_flows.h"
#include "millrace/dataflow/image/image_file.h"
#include "millrace/models/predict/test_image.h"
#include "tests/dataflow/tiny_coco.h"
#include "tests/models/predict/trained.h"

namespace millrace::testing {
namespace {

/// Compares all batches of an evaluation with batches that TestTime makes from the same files.
void expect_same_batches(const DataOptions& data, const DataSplit& split) {
  const TestTime how(data);
  auto flow = start_eval_flow(data, split);
  std::size_t images = 0;
  while (const auto item = flow->next()) {
    const auto& seen = item->value;
    std::vector<Sample> samples;
    for (const auto& image : seen.images) {
      const auto& about = *split.annotations->find_image(image.image_id);
      const auto file = split.images / split.annotations->text(about.file_name);
      samples.push_back(prepared(ImageFile{file}, how, ""));
      samples.back().image_id = image.image_id;
    }
    auto made = how.pad(std::move(samples));
    made.objects = seen.objects;
    EXPECT_EQ(made.divisor, seen.divisor);
    EXPECT_EQ(digest(made), digest(seen));
    images += seen.size();
  }
  EXPECT_EQ(images, split.annotations->images.size());
}

TEST(TestTime, MakesSameBatchesForEvaluationAndPredictor) {
  TinyCoco tiny(7);
  for (const auto style : {ResizeStyle::opencv, ResizeStyle::detectron2, ResizeStyle::torchvision})
    for (const bool reduced : {true, false})
      for (const std::int64_t side : {20, 56}) {
        tiny.resize_style = style;
        tiny.reduced_decoding = reduced;
        tiny.test_short_side = side;
        tiny.test_batch_size = 3;
        tiny.divisor = side == 20 ? 32 : 1;
        expect_same_batches(tiny, open_split(tiny, tiny.val));
      }
}

TEST(TestTime, DecodesAtFullSizeByDefault) {
  TinyCoco tiny(7);
  tiny.test_short_side = 10;  // a third of the smallest image
  const auto evaluated = [&](bool train, bool eval) {
    tiny.reduced_decoding = train;
    tiny.eval_reduced_decoding = eval;
    return digests(*start_eval_flow(tiny, open_split(tiny, tiny.val)), 7);
  };
  const auto whole = evaluated(false, false);
  EXPECT_EQ(evaluated(true, false), whole) << "data.reduced_decoding applies to training only";
  EXPECT_NE(evaluated(false, true), whole);
}

TEST(TestTime, RotatesPhotosByExifOrientation) {
  for (const auto size : {cv::Size(104, 80), cv::Size(64, 64)}) {
    const auto stored = encoded(".jpg", noise(size.width, size.height));
    const auto pixels = decode_rgb(stored, "x");
    for (char orientation = 1; orientation <= 8; ++orientation) {
      const auto bytes = with_orientation(stored, orientation);
      const auto upright_pixels = upright(pixels, orientation);
      const auto expect_upright = [&](const Sample& sample) {
        ASSERT_EQ(cv::Size(sample.width, sample.height), upright_pixels.size());
        EXPECT_EQ(cv::norm(sample.image.pixels(), upright_pixels, cv::NORM_INF), 0)
            << int{orientation};
      };
      expect_upright(TestTime{}.photo("x", bytes));
      // Tests at the photo's own size, so that nothing is resized.
      DataOptions data;
      data.test_short_side = std::min(size.width, size.height);
      data.test_max_side = 1000;
      expect_upright(prepared(ImageBytes{bytes}, TestTime(data), "x"));
    }
  }
}

TEST(TestTime, DoesNotRotatePhotosOfAnnotatedSize) {
  const auto stored = encoded(".jpg", noise(104, 80));
  const auto pixels = decode_rgb(stored, "x");
  for (const char orientation : {2, 3, 4, 6}) {
    const auto sample =
        TestTime{}.photo("x", with_orientation(stored, orientation), cv::Size(104, 80));
    EXPECT_EQ(cv::norm(sample.image.pixels(), pixels, cv::NORM_INF), 0) << int{orientation};
  }
}

TEST(TestTime, MatchesEvaluationForRealPhotos) {
  MILLRACE_NEEDS_DATA("coco_mini");
  DataOptions data;
  data.root = (data_folder() / "coco_mini").string();
  data.short_side = {200};
  data.test_batch_size = 4;
  expect_same_batches(data, open_split(data, data.val));
}

}  // namespace
}  // namespace millrace::testing
