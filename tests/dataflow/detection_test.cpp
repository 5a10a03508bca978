// End-to-end tests of detection flows, on generated images and on real photos.
#include "millrace/dataflow/detection_flows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/dataflow/detection/count_objects.h"
#include "millrace/dataflow/detection/detection_stages.h"
#include "millrace/dataflow/largest_batch.h"
#include "millrace/dataflow/sources/detection_source.h"
#include "tests/dataflow/flows.h"
#include "tests/dataflow/tiny_coco.h"
#include "tests/support/thrown.h"

namespace millrace {
namespace {

using namespace ::testing;
using namespace testing;

/// Returns the digests of a training flow's first batches. Expects equal digests with 1, 2 and 8
/// threads.
std::vector<std::uint64_t> digests_by_any_threads(DataOptions options, std::uint64_t seed = 1) {
  const auto given = [&](int threads) {
    options.threads = threads;
    return digests(*train_flow(options, {}, seed), 40);
  };
  const auto expected = given(1);
  EXPECT_EQ(given(2), expected);
  EXPECT_EQ(given(8), expected);
  return expected;
}

TEST(TrainFlow, YieldsSameBytesForAnyThreadCount) {
  const TinyCoco data(20);
  EXPECT_NE(digests_by_any_threads(data), digests_by_any_threads(data, /*seed=*/2));
}

TEST(TrainFlow, YieldsSamePhotosForAnyThreadCount) {
  MILLRACE_NEEDS_DATA("coco_mini");
  digests_by_any_threads(coco_mini());
}

TEST(TrainFlow, ResumesAfterEveryBatch) {
  const TinyCoco options(14);
  std::ofstream(options.image(5)) << "no JPEG";  // skipped in each epoch
  const auto whole = train_flow(options);
  std::vector<std::uint64_t> expected;
  std::vector<Cursor> cursors;
  for (int i = 0; i < 20; ++i) {
    auto item = whole->next();
    expected.push_back(digest(item->value));
    cursors.push_back(item->cursor);
  }
  for (std::size_t k = 0; k + 1 < cursors.size(); ++k) {
    const auto rest = train_flow(options, {}, 1, {}, cursors[k]);
    const auto left = static_cast<int>(expected.size() - k - 1);
    ASSERT_THAT(
        digests(*rest, left),
        ElementsAreArray(expected.begin() + static_cast<std::ptrdiff_t>(k) + 1, expected.end()))
        << k;
  }
}

TEST(TrainFlow, MatchesFlowDeclaredInToml) {
  TinyCoco options(10);
  auto stages = pipeline(kFlipAndResize);
  const auto given = [&] { return digests(*train_flow(options, stages), 12); };
  const auto expect_default = [&] { EXPECT_EQ(given(), digests(*train_flow(options), 12)); };
  expect_default();
  options.short_side = {10, 14};  // a half to a fifth of the images' width and height
  options.max_side = 30;
  expect_default();
  const auto reduced = given();
  options.reduced_decoding = false;
  expect_default();
  const auto whole = given();
  EXPECT_NE(reduced, whole);
  options.reduced_decoding = true;
  stages[1].set("short_side", {std::int64_t{0}, {}});
  EXPECT_EQ(given(), whole);
}

TEST(TrainFlow, ReducedDecodingChangesOnlyPixels) {
  MILLRACE_NEEDS_DATA("coco_mini");
  auto options = coco_mini({120, 200}, 300);
  const auto reduced = train_flow(options);
  options.reduced_decoding = false;
  const auto whole = train_flow(options);
  double difference = 0;
  constexpr int kBatches = 20;
  for (int i = 0; i < kBatches; ++i) {
    auto one = reduced->next()->value, other = whole->next()->value;
    const auto bytes = one.bytes();
    ASSERT_EQ(bytes, other.bytes());
    std::uint64_t sum = 0;
    for (std::size_t k = 0; k < bytes; ++k)
      sum += static_cast<std::uint64_t>(std::abs(one.pixels[k] - other.pixels[k]));
    difference += static_cast<double>(sum) / static_cast<double>(bytes) / kBatches;
    one.pixels = other.pixels;
    ASSERT_EQ(digest(one), digest(other)) << "sizes, scales and objects must be equal";
  }
  EXPECT_GT(difference, 0) << "these photos are more than twice the training size";
  EXPECT_LT(difference, 5)
      << "of 255; photos decoded at full size are resized without antialiasing";
}

/// The number of decoded samples in the stage 'dwell' now, and its maximum so far.
std::atomic<int> dwelling = 0, most_dwelling = 0;

struct Dwell {
  static constexpr std::string_view kName = "dwell";
  Sample operator()(Sample sample) const {
    const int now = ++dwelling;
    for (int most = most_dwelling; most < now && !most_dwelling.compare_exchange_weak(most, now);)
      continue;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    --dwelling;
    return sample;
  }
  void describe(Options&) {}
};
MILLRACE_REGISTER(register_stage<Dwell>("takes its time"));

TEST(TrainFlow, KeepsMemoryWithinLimit) {
  TinyCoco data(40);
  const auto file = std::filesystem::path(data.root) / "annotations/instances_train2017.json";
  auto json = nlohmann::json::parse(std::ifstream(file));
  cv::Mat large(1500, 1500, CV_8UC3, cv::Scalar(1, 2, 3));  // 6.4 MiB
  for (auto& image : json["images"]) {
    image["width"] = image["height"] = 1500;
    const std::string name = image["file_name"];
    save_picture(std::filesystem::path(data.root) / "train2017" / name, large);
  }
  auto plain = nlohmann::json::array();  // the run lengths have the old image sizes
  for (const auto& object : json["annotations"])
    if (object["iscrowd"] == 0) plain.push_back(object);
  json["annotations"] = plain;
  std::ofstream(file) << json;
  data.reduced_decoding = false;
  data.threads = 8;
  data.in_flight = 36;
  const auto stages = pipeline("{ type = 'dwell' }, " + kFlipAndResize);
  const auto expected = digests(*train_flow(data, stages), 10);
  // Memory for two images, and for less than one; even then, batches must pass.
  for (const int memory : {14, 1}) {
    data.memory = memory;
    most_dwelling = 0;
    EXPECT_EQ(digests(*train_flow(data, stages), 10), expected);
    EXPECT_LE(most_dwelling, data.batch_size);
  }
}

TEST(TrainFlow, RejectsImagesAboveMaxPixels) {
  TinyCoco data(6);
  data.on_error = OnError::fail;
  data.max_pixels = 100;
  for (const bool evaluates : {false, true}) {
    const auto message = message_of<DataError>([&] {
      if (evaluates)
        start_eval_flow(data, open_split(data, data.val))->next();
      else
        train_flow(data)->next();
    });
    EXPECT_THAT(message, AllOf(HasSubstr("picture"), HasSubstr("data.max_pixels = 100")));
  }
  auto photos = start_photo_flow(data, {data.image(0)});
  EXPECT_FALSE(photos.batches->next());
  EXPECT_THAT(photos.photos->take(0).fault,
              AllOf(HasSubstr("picture0.jpg"), HasSubstr("data.max_pixels = 100")));
  data.max_pixels = 0;
  EXPECT_TRUE(train_flow(data)->next());
  EXPECT_TRUE(start_photo_flow(data, {data.image(0)}).batches->next());
}

TEST(TrainFlow, AcceptsTruncatedJpegIfNotStrict) {
  TinyCoco data(6);
  std::filesystem::resize_file(data.image(0), std::filesystem::file_size(data.image(0)) - 20);
  data.on_error = OnError::fail;
  const auto give = [&] {
    const auto train = train_flow(data);
    for (int i = 0; i < 4; ++i) train->next();
    const auto eval = start_eval_flow(data, open_split(data, data.val));
    while (eval->next()) continue;
  };
  const auto detected = [&] {
    return start_photo_flow(data, {data.image(0)}).batches->next().has_value();
  };
  EXPECT_THAT(give, ThrowsMessage<DataError>(HasSubstr("picture0.jpg")));
  EXPECT_FALSE(detected());
  data.strict_decoding = false;
  EXPECT_NO_THROW(give());
  EXPECT_TRUE(detected());
}

/// Stages between decode and resize that keep sizes do not change the batches, even if images are
/// decoded at reduced size.
TEST(TrainFlow, DecodesReducedBeforeSizeKeepingStages) {
  TinyCoco data(12);
  data.short_side = {12};
  data.max_side = 30;
  const auto given = [&](const std::string& between) {
    return digests(*train_flow(data, pipeline(between + "{ type = 'resize_shortest_edge' }, ")),
                   12);
  };
  const auto plain = given("");
  for (const auto* stage : {"{ type = 'cache' }, ", "{ type = 'print', count = 1 }, ",
                            "{ type = 'filter', min_side = 2 }, ",
                            "{ type = 'filter', min_side = 2 }, { type = 'cache' }, "})
    EXPECT_EQ(given(stage), plain) << stage;
  data.reduced_decoding = false;
  EXPECT_NE(given(""), plain);
}

TEST(TrainFlow, ReportsMismatchedStageTypes) {
  const TinyCoco options(4);
  const auto stages =
      tables_of(R"(stages = [ { type = "read" }, { type = "decode" }, { type = "pad" } ])");
  EXPECT_THAT([&] { train_flow(options, stages); },
              ThrowsMessage<ConfigError>(ContainsRegex(
                  "^test.toml:1:52: .*'pad' .*a group of samples.*'decode' .*a sample$")));
}

TEST(TrainFlow, RejectsTooSmallPadShapes) {
  TinyCoco options(20);
  options.pad_shapes = {"80x56", "56x80"};
  const auto start = [&] { train_flow(options)->next(); };
  EXPECT_NO_THROW(start());
  options.aspect_grouping = false;  // allows wide and tall images in one batch
  EXPECT_THAT(start, ThrowsMessage<ConfigError>(HasSubstr("none of the shapes 80x56")));
  options.batch_size = 1;
  EXPECT_NO_THROW(start());
}

TEST(TrainFlow, RejectsPadShapesTooSmallForZoomOut) {
  TinyCoco data(30);
  data.short_side = {40};
  data.max_side = 60;
  const std::string resize = "{ type = 'resize_shortest_edge' }, ",
                    zoom = "{ type = 'zoom_out', probability = 1, max_scale = 2 }, ";
  const auto complaint = [&](const std::string& shape, const std::string& middle) {
    data.pad_shapes = {shape};
    return message_of<ConfigError>([&] { train_flow(data, pipeline(middle)); });
  };
  EXPECT_THAT(complaint("100x100", resize + zoom), HasSubstr("none of the shapes"));
  EXPECT_THAT(complaint("40x40", zoom + resize), HasSubstr("none of the shapes"));
  for (const auto& [shape, middle] : {std::pair(std::string("120x120"), resize + zoom),
                                      std::pair(std::string("60x60"), zoom + resize)}) {
    EXPECT_EQ(complaint(shape, middle), "");
    EXPECT_NO_THROW(digests(*train_flow(data, pipeline(middle)), 60));
  }
}

/// A stage that reports a larger output than its input.
struct Frame {
  static constexpr std::string_view kName = "frame";
  Sample operator()(Sample sample) const { return sample; }
  std::optional<cv::Size> largest_output(std::optional<cv::Size> input) const {
    return input ? cv::Size(input->width + 32, input->height + 32) : input;
  }
  void describe(Options&) {}
};
MILLRACE_REGISTER(register_stage<Frame>("makes images larger"));

TEST(TrainFlow, LargestSlotBoundsAllBatches) {
  TinyCoco options(20);
  const auto slot = largest_slot(options, {});
  ASSERT_TRUE(slot.has_value());
  EXPECT_EQ(*slot, cv::Size(96, 64));
  const auto flow = train_flow(options);
  for (int i = 0; i < 40; ++i) {
    const auto batch = flow->next()->value;
    EXPECT_LE(batch.width * batch.height, slot->area());
  }
  const auto of = [&](const std::string& resize) {
    return largest_slot(options, pipeline(resize));
  };
  EXPECT_EQ(of("{ type = 'resize_shortest_edge' }, "), slot);
  EXPECT_EQ(of("{ type = 'large_scale_jitter', width = 100 }, "), cv::Size(128, 1024));
  EXPECT_EQ(of(""), std::nullopt);
  EXPECT_EQ(of("{ type = 'resize_shortest_edge' }, { type = 'frame' }, "), cv::Size(128, 96));
}

TEST(LargestBatch, MatchesLargestTrainingBatch) {
  TinyCoco options(20);
  options.short_side = {48};  // with several sizes, the largest would be assumed for each image
  constexpr int kBatches = 40;
  const auto train = open_train_data(options, {});
  for (const std::int64_t ranks : {1, 2}) {
    cv::Size padded;  // largest by area, over the batches of all ranks together
    std::int64_t number = 0;
    std::vector<std::unique_ptr<DataFlow<Batch>>> flows;
    for (std::int64_t rank = 0; rank < ranks; ++rank)
      flows.push_back(train_flow(options, {}, 1, {rank, ranks}));
    for (int i = 0; i < kBatches; ++i) {
      cv::Size step;
      for (const auto& flow : flows) {
        const auto batch = flow->next()->value;
        step = {std::max(step.width, batch.width), std::max(step.height, batch.height)};
      }
      if (step.area() > padded.area()) padded = step, number = i + 1;
    }
    const auto largest = largest_train_batch(options, {}, train, 1, ranks, kBatches);
    ASSERT_TRUE(largest.has_value());
    EXPECT_EQ(largest->slot.area(), padded.area());
    EXPECT_EQ(largest->images, options.batch_size);
    EXPECT_EQ(largest->planned, kBatches);
    EXPECT_EQ(largest->number, number);
  }
}

TEST(LargestBatch, UsesConfigurationForUnknownSizes) {
  const TinyCoco options(8);
  const auto train = open_train_data(options, {});
  const auto of = [&](std::span<const Config> stages) {
    return largest_train_batch(options, stages, train, 1, 1, 10);
  };
  const auto jitter = of(pipeline("{ type = 'large_scale_jitter', width = 100 }, "));
  ASSERT_TRUE(jitter.has_value());
  EXPECT_EQ(jitter->slot, cv::Size(128, 1024));
  EXPECT_EQ(jitter->planned, 0);
  EXPECT_FALSE(of(pipeline("")).has_value());
}

TEST(TrainFlow, FiltersEmptyImagesByDefault) {
  TinyCoco options(10);
  EXPECT_EQ(train_flow(options)->epoch_size(), 9);
  options.filter_empty = false;
  EXPECT_EQ(train_flow(options)->epoch_size(), 10);
}

TEST(EvalFlow, YieldsEachImageOnceInOrder) {
  TinyCoco options(11);
  options.test_batch_size = 2;
  const auto flow = start_eval_flow(options, open_split(options, options.val));
  std::vector<std::int64_t> ids;
  while (const auto item = flow->next())
    for (const auto& image : item->value.images) {
      ids.push_back(image.image_id);
      EXPECT_TRUE(std::min(image.width, image.height) == 56 ||
                  std::max(image.width, image.height) == 80);
      EXPECT_FLOAT_EQ(image.scale_x,
                      static_cast<float>(image.width) / static_cast<float>(image.original_width));
    }
  EXPECT_THAT(ids, ElementsAre(100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110));
}

TEST(EvalFlow, SkipsAndCountsTruncatedJpeg) {
  TinyCoco options(12);
  std::filesystem::resize_file(options.image(3), std::filesystem::file_size(options.image(3)) / 2);
  for (const auto on_error : {OnError::skip, OnError::replace}) {
    options.on_error = on_error;
    const auto flow = start_eval_flow(options, open_split(options, options.val));
    EXPECT_THAT(drain(*flow), SizeIs(11));
    EXPECT_EQ(flow->report().skipped, 1);
    EXPECT_THAT(flow->report().skipped_reasons[0],
                HasSubstr("stage 'decode': " + options.image(3).string() + ": broken JPEG"));
  }
}

TEST(DetectionSource, ReturnsObjectsOfGivenClasses) {
  TinyCoco options(4);
  options.classes = {"dog"};
  const DetectionSource source(open_split(options, options.train), /*filter_empty=*/true);
  ASSERT_EQ(source.size(), 1);  // image 1, since image 3 has no object
  const auto sample = source[0];
  EXPECT_EQ(sample.image_id, 101);
  EXPECT_THAT(sample.objects.classes, ElementsAre(0));
  EXPECT_EQ(sample.objects.boxes[0], (Box{5, 5, 25, 22}));
}

/// Returns a data set of one 50 x 40 image with these annotations.
DataSplit one_image(const std::string& annotations) {
  const auto dataset = coco::parse_dataset(
      R"({"images": [{"id": 1, "file_name": "a.jpg", "width": 50, "height": 40}],
          "categories": [{"id": 1, "name": "star"}], "annotations": [)" +
          annotations + "]}",
      "test");
  return make_split(dataset, "images", {});
}

std::string annotation(int id, const std::string& box, const std::string& more = "") {
  return R"({"image_id": 1, "category_id": 1, "id": )" + std::to_string(id) + R"(, "bbox": )" +
         box + more + "}";
}

TEST(DetectionSource, SkipsIgnoredObjects) {
  const auto split = one_image(annotation(1, "[1, 1, 9, 9]", R"(, "ignore": 1)") + "," +
                               annotation(2, "[2, 2, 9, 9]", R"(, "ignore": 0)") + "," +
                               annotation(3, "[3, 3, 9, 9]", R"(, "ignore": 1, "iscrowd": 1)"));
  const DetectionSource source(split, true);
  EXPECT_THAT(source[0].objects.boxes, ElementsAre(Box{2, 2, 11, 11}, Box{3, 3, 12, 12}));
  EXPECT_THAT(source[0].objects.crowd, ElementsAre(0, 1))
      << "crowds are kept, since they are never learned";
  EXPECT_EQ(source.unusable_objects(), 1);
  const auto alone = one_image(annotation(1, "[1, 1, 9, 9]", R"(, "ignore": true)"));
  EXPECT_THROW(open_source(alone, true), ConfigError) << "no image has an object to learn";
}

TEST(DetectionSource, ClipsBoxesAndSkipsThinOnes) {
  const auto split =
      one_image(annotation(1, "[10, 10, 0.01, 20]") + "," + annotation(2, "[10, 10, 20, 0.99]") +
                "," + annotation(3, "[49.5, 10, 10, 20]") + "," +
                annotation(4, "[40, 30, 20, 20]") + "," + annotation(5, "[10, 10, 0, 20]") + "," +
                annotation(6, "[60, 10, 5, 5]") + "," + annotation(7, "[10.3, 10.7, 1, 1]"));
  const DetectionSource source(split, true);
  EXPECT_THAT(source[0].objects.boxes, ElementsAre(Box{40, 30, 50, 40}, _));
  EXPECT_THAT(source[0].objects.segmentations, SizeIs(2));
  EXPECT_EQ(source.unusable_objects(), 5);
}

/// Edits the annotation file of a data set.
template <class F>
void edit_annotations(const TinyCoco& data, F change) {
  const auto file =
      data.image(0).parent_path().parent_path() / "annotations" / "instances_train2017.json";
  auto json = nlohmann::json::parse(std::ifstream(file));
  change(json);
  std::ofstream(file) << json;
}

/// Returns the message of the error that `open_split` throws.
template <class E = Error>
std::string complaint(const DataOptions& options, const std::string& split = "train2017") {
  return message_of<E>([&] { open_split(options, split); });
}

TEST(OpenSplit, SkipsInvalidAnnotations) {
  TinyCoco options(30);
  edit_annotations(options, [](auto& json) {
    json["annotations"][2]["segmentation"].push_back({1, 2, 3, 4});
    json["annotations"][7]["bbox"] = {1, 2, -3, 4};
    json["annotations"][9]["image_id"] = 7;
  });
  const auto split = open_split(options, options.train);
  EXPECT_EQ(split.annotations->images.size(), 30U);
  const auto all = split.annotations->annotations.size();
  EXPECT_EQ(drain(*train_flow(options), 20).size(), 20U);
  options.max_skipped = 2.5 / static_cast<double>(all + 3);
  EXPECT_EQ(open_split(options, options.train).annotations->annotations.size(), all)
      << "a fraction of an annotation counts as one";
  options.max_skipped = 1.5 / static_cast<double>(all + 3);
  EXPECT_THAT(complaint(options),
              AllOf(HasSubstr("instances_train2017.json"), HasSubstr("data.max_skipped"),
                    HasSubstr("annotation 3, byte "), HasSubstr("polygon 1 has 4 numbers")));
  options.on_error = OnError::fail;
  EXPECT_THAT(complaint(options), HasSubstr("polygon 1 has 4 numbers"));
}

TEST(OpenSplit, SkipsInvalidImages) {
  const TinyCoco data(30);
  edit_annotations(data, [](auto& json) { json["images"][3].erase("width"); });
  const auto split = open_split(data, "train2017");
  EXPECT_EQ(split.annotations->images.size(), 29U);
  EXPECT_EQ(split.annotations->find_image(103), nullptr);
  edit_annotations(data, [](auto& json) { json["images"][5]["id"] = 100; });
  EXPECT_THAT(complaint(data), HasSubstr("image id 100 ")) << "an id of two images is ambiguous";
}

TEST(OpenSplit, RejectsDuplicateCategoryNames) {
  TinyCoco options(4);
  edit_annotations(options, [](auto& json) {
    json["categories"].push_back({{"id", 40}, {"name", "cat"}});
  });
  for (const auto& classes : {Options::Strings{}, Options::Strings{"dog", "cat"}}) {
    options.classes = classes;
    EXPECT_THAT(complaint(options),
                AllOf(HasSubstr("instances_train2017.json: categories 17 and 40 "),
                      Not(HasSubstr("data.classes"))));
  }
  options.classes = {"dog"};
  EXPECT_EQ(open_split(options, options.train).classes, options.classes);
}

TEST(OpenSplit, ReportsMissingFilesAndClasses) {
  TinyCoco options(2);
  EXPECT_THAT(complaint<ConfigError>(options, "val2017"),
              AllOf(HasSubstr("annotation file"), HasSubstr("instances_val2017.json"),
                    HasSubstr("data.val")));
  options.classes = {"dgo"};
  EXPECT_THAT(complaint<ConfigError>(options), HasSubstr("'dgo'; did you mean 'dog'?"));
  options.root = "no/such/folder";
  EXPECT_THAT(complaint<ConfigError>(options),
              AllOf(HasSubstr("'no/such/folder'"), HasSubstr("data.root")));
}

TEST(DataSummary, CountsObjectsByClassAndSize) {
  const auto split =
      one_image(annotation(1, "[0, 0, 31, 31]") + "," + annotation(2, "[0, 0, 40, 32]") + "," +
                annotation(3, "[0, 0, 50, 40]", R"(, "iscrowd": 1)"));
  EXPECT_EQ(data_summary(*open_source(split, true), {"star", "ring"}),
            "training data: 1 image, 2 objects (2.0 per image), 1 crowd; 50.0 % small (boxes under "
            "32 x 32 pixels), 50.0 % medium, 0.0 % large (over 96 x 96)\n"
            "objects per class:\n  star 2   ring 0");
}

}  // namespace
}  // namespace millrace
