// Evaluation's batches and the predictor's are the same bytes.
#include "millrace/dataflow/detection/test_time.h"

#include <gtest/gtest.h>

#include "millrace/dataflow/detection_flows.h"
#include "millrace/predict/test_image.h"
#include "tests/dataflow/tiny_coco.h"

namespace millrace::testing {
namespace {

/// Compares all batches of a pass with those made of the same files.
void expect_same_batches(const DataOptions& data, const DataSplit& split) {
  const auto how = test_time(data);
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
    auto made = how.pad()(std::move(samples));
    made.objects = seen.objects;
    EXPECT_EQ(made.divisor, seen.divisor);
    EXPECT_EQ(digest(made), digest(seen));
    images += seen.size();
  }
  EXPECT_EQ(images, split.annotations->images.size());
}

TEST(TestTime, EvaluationAndPredictorMakeTheSameBytes) {
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

TEST(TestTime, OfRealPhotosToo) {
  MILLRACE_NEEDS_DATA("coco_mini");
  DataOptions data;
  data.root = (data_folder() / "coco_mini").string();
  data.short_side = {200};
  data.test_batch_size = 4;
  expect_same_batches(data, open_split(data, data.val));
}

}  // namespace
}  // namespace millrace::testing
