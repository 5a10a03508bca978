// Predictor returns the same bytes as `trainer predict` and `trainer eval`.
#include "millrace/models/predict/predictor.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "millrace/coco/data/annotations.h"
#include "millrace/coco/data/detections.h"
#include "millrace/dataflow/image/image_file.h"
#include "millrace/models/weights/safetensors.h"
#include "millrace/trainer/evaluation/evaluation.h"
#include "tests/models/predict/trained.h"
#include "tests/support/thrown.h"

namespace millrace::testing {
namespace {

/// Returns the contents of a results file with predictions for images with these ids.
std::string results_of(const std::vector<Prediction>& predictions,
                       const std::vector<std::int64_t>& ids, const Predictor& predictor,
                       const fs::path& file) {
  coco::Detections all;
  for (std::size_t i = 0; i < predictions.size(); ++i)
    for (const auto& object : predictions[i].objects)
      all.add(as_coco(object, ids[i], predictor.category_ids()));
  coco::write_detections(file, all);
  return read_text(file);
}

std::vector<Prediction> one_by_one(const Predictor& predictor,
                                   const std::vector<PredictorImage>& images) {
  std::vector<Prediction> result;
  for (const auto& image : images) result.push_back(predictor.predict(image));
  return result;
}

class EveryDetector : public Trained, public ::testing::WithParamInterface<std::string> {
 protected:
  std::string config() const { return "configs/" + GetParam() + ".toml"; }
};

INSTANTIATE_TEST_SUITE_P(ByName, EveryDetector,
                         ::testing::Values("maskrcnn", "fasterrcnn", "cascadercnn", "retinanet"),
                         [](const auto& one) { return one.param; });

TEST_P(EveryDetector, MatchesTrainerPredict) {
  const auto weights = train(config());
  const auto photos = make_photos();
  std::vector<PredictorImage> files, encoded;
  std::vector<std::int64_t> ids;
  std::vector<std::string> bytes;
  for (const auto& file : images_in(photos)) {
    files.emplace_back(ImageFile{file});
    bytes.push_back(read_text(file));
    ids.push_back(std::ssize(files));
  }
  for (const auto& file : bytes) encoded.emplace_back(ImageBytes{file});
  auto mixed = files;
  for (std::size_t i = 0; i < mixed.size(); i += 2) mixed[i] = encoded[i];

  for (const int threads : {1, 2}) {
    successful(trainer(with_settings(
        {"predict", config(), "--weights", weights, photos, "--out", in_folder("seen")},
        small() + Words{"train.threads=" + std::to_string(threads)})));
    const auto expected = read_text(in_folder("seen/detections.json"));
    EXPECT_GT(read_json(in_folder("seen/detections.json")).size(), 20U);
    const Predictor predictor(weights, {.threads = threads});
    const auto results = [&](const std::vector<Prediction>& predictions) {
      return results_of(predictions, ids, predictor, in_folder("results.json"));
    };
    EXPECT_EQ(results(one_by_one(predictor, files)), expected) << "files, one by one";
    EXPECT_EQ(results(one_by_one(predictor, encoded)), expected) << "bytes, one by one";
    EXPECT_EQ(results(predictor.predict(files)), expected) << "files at once";
    EXPECT_EQ(results(predictor.predict(mixed)), expected) << "files and bytes at once";
    const auto from_file = Predictor(weights / "model.safetensors", {.threads = threads});
    EXPECT_EQ(results(from_file.predict(files)), expected) << "the file instead of the folder";
  }
}

TEST_P(EveryDetector, MatchesEvaluation) {
  const auto weights = train(config());
  for (const std::string batch : {"1", "3"}) {
    successful(trainer(
        with_settings({"eval", config(), "--weights", weights, "--out", in_folder("eval.json")},
                      small() + Words{"data.test_batch_size=" + batch, "train.threads=2"})));
    const auto data = make_data();
    const auto truth = coco::read_dataset(data / "annotations/instances_val2017.json");
    std::vector<PredictorImage> files;
    std::vector<std::int64_t> ids;
    for (const auto& image : truth->images) {
      files.emplace_back(ImageFile{data / "val2017" / truth->text(image.file_name)});
      ids.push_back(image.id);
    }
    const Predictor predictor(weights, {.threads = 2});
    EXPECT_EQ(results_of(predictor.predict(files), ids, predictor, in_folder("results.json")),
              read_text(in_folder("eval.json")));
  }
}

class OnePredictor : public Trained {
 protected:
  const fs::path weights_ = train("configs/maskrcnn.toml");
  const Predictor predictor_ = Predictor(weights_, {.threads = 1});

  static ::testing::AssertionResult same(const Prediction& a, const Prediction& b) {
    const auto equal = [](const DetectedObject& x, const DetectedObject& y) {
      return x.box == y.box && x.label == y.label && x.score == y.score && x.mask == y.mask;
    };
    if (a.width == b.width && a.height == b.height && !a.objects.empty() &&
        std::ranges::equal(a.objects, b.objects, equal))
      return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << "detections differ, or nothing was found";
  }

  static ImagePixels pixels_of(const cv::Mat& image, PixelOrder order, std::size_t stride = 0) {
    const auto bytes = (static_cast<std::size_t>(image.rows) - 1) * image.step +
                       3 * static_cast<std::size_t>(image.cols);
    return {{image.data, bytes}, image.cols, image.rows, stride, order};
  }
};

TEST_F(OnePredictor, AcceptsAnyPixelOrderAndStride) {
  const auto file = make_photos() / "h.png";
  const auto expected = predictor_.predict(ImageFile{file});
  const cv::Mat bgr = picture_in(file);
  cv::Mat rgb, wide(bgr.rows, bgr.cols + 5, CV_8UC3, cv::Scalar(1, 2, 3));
  cv::cvtColor(bgr, rgb, cv::COLOR_BGR2RGB);
  rgb.copyTo(wide(cv::Rect(0, 0, bgr.cols, bgr.rows)));
  const auto part = wide(cv::Rect(0, 0, bgr.cols, bgr.rows));
  EXPECT_TRUE(same(predictor_.predict(pixels_of(rgb, PixelOrder::rgb)), expected));
  EXPECT_TRUE(same(predictor_.predict(pixels_of(bgr, PixelOrder::bgr, bgr.step)), expected));
  EXPECT_TRUE(same(predictor_.predict(pixels_of(part, PixelOrder::rgb, part.step)), expected));
}

TEST_F(OnePredictor, MatchesExportCertificates) {
  const auto photos = make_photos(), model = in_folder("model.onnx");
  successful(trainer(
      {"export", weights_, "--out", model, "--photos", photos, "--set", "train.threads=1"}));
  const auto tensors = read_safetensors(in_folder("model.certificate.safetensors"));
  const std::map<std::string, at::Tensor> by_name(tensors.begin(), tensors.end());
  int number = 0, all = 0;
  for (const auto& file : images_in(photos)) {
    const auto found = predictor_.predict(ImageFile{file});
    const auto start = std::to_string(number++) + ".";
    const auto image = by_name.at(start + "image");
    EXPECT_EQ(image.size(0), found.height) << file;
    EXPECT_EQ(image.size(1), found.width) << file;
    const auto boxes = by_name.at(start + "boxes"), scores = by_name.at(start + "scores");
    ASSERT_EQ(scores.size(0), std::ssize(found.objects)) << file;
    for (std::int64_t i = 0; i < scores.size(0); ++i, ++all) {
      const auto& object = found.objects[static_cast<std::size_t>(i)];
      EXPECT_EQ(scores[i].item<float>(), object.score) << file;
      EXPECT_EQ(boxes[i][0].item<float>(), object.box.x1) << file;
      EXPECT_EQ(boxes[i][3].item<float>(), object.box.y2) << file;
    }
  }
  EXPECT_GT(all, 20);
}

TEST_F(OnePredictor, ReportsClassesAndMasks) {
  const auto truth = read_json(make_data() / "annotations/instances_val2017.json");
  ASSERT_EQ(predictor_.classes().size(), truth["categories"].size());
  for (std::size_t k = 0; k < predictor_.classes().size(); ++k) {
    EXPECT_EQ(predictor_.classes()[k], truth["categories"][k]["name"]);
    EXPECT_EQ(predictor_.category_ids()[k], truth["categories"][k]["id"]);
  }
  EXPECT_TRUE(predictor_.gives_masks());
  EXPECT_TRUE(predictor_.predict(std::span<const PredictorImage>()).empty());
}

TEST_F(OnePredictor, ReturnsMaskBitmaps) {
  const auto found = predictor_.predict(ImageFile{make_photos() / "a_wide.jpg"});
  ASSERT_FALSE(found.objects.empty());
  for (const auto& object : found.objects) {
    const auto bitmap = Predictor::bitmap(object.mask);
    EXPECT_EQ(bitmap.size(), std::size_t{150} * 100);
    EXPECT_EQ(coco::encode(bitmap.data(), 100, 150), object.mask);
  }
  EXPECT_THAT(message_of([] { Predictor::bitmap({3, 4, {5}}); }), HasSubstr("4 x 3"));
}

TEST_F(OnePredictor, ReportsUnusableImages) {
  const auto good = make_photos() / "a_wide.jpg";
  const auto cut = read_text(good).substr(0, 400);
  const std::vector<std::uint8_t> memory(300);
  const auto message = [&](const PredictorImage& bad) {
    const std::vector<PredictorImage> images = {ImageFile{good}, bad};
    return message_of<DataError>([&] { predictor_.predict(images); });
  };
  EXPECT_THAT(message(ImageFile{in_folder("absent.jpg")}), HasSubstr("absent.jpg"));
  EXPECT_THAT(message(ImageFile{in_folder("")}), HasSubstr(in_folder("").string()));
  EXPECT_THAT(message(ImageBytes{cut}), HasSubstr("JPEG"));
  EXPECT_THAT(message(ImageBytes{}), HasSubstr("empty"));
  EXPECT_THAT(message(ImageBytes{"<html></html>"}), StartsWith("image 2 of 2: "));
  const auto pixels = [&](std::int32_t width, std::int32_t height, std::size_t stride = 0) {
    return message(ImagePixels{memory, width, height, stride});
  };
  EXPECT_EQ(pixels(10, 10), "");
  EXPECT_THAT(pixels(10, 11), StartsWith("image 2 of 2: 10 x 11 "));
  EXPECT_THAT(pixels(10, 10, 31), HasSubstr("300 bytes"));
  EXPECT_THAT(pixels(10, 10, 29), HasSubstr("29 bytes"));
  EXPECT_THAT(pixels(10, 2, SIZE_MAX), HasSubstr("300 bytes"));
  EXPECT_THAT(pixels(0, 10), HasSubstr("0 x 10"));
  EXPECT_THAT(pixels(10, -1), HasSubstr("10 x -1"));
  EXPECT_THAT(pixels(INT32_MAX, INT32_MAX), HasSubstr(std::to_string(INT32_MAX)));
}

TEST_F(OnePredictor, ReportsUnusableModels) {
  const auto message = [](const fs::path& model) {
    return message_of([&] { Predictor predictor(model); });
  };
  EXPECT_THAT(message(in_folder("absent")), HasSubstr("absent: "));
  EXPECT_THAT(message(make_photos()), HasSubstr("model.safetensors"));
  const auto whole = read_text(weights_ / "model.safetensors");
  const auto damaged = in_folder("damaged.safetensors");
  for (const auto size : {std::size_t{0}, std::size_t{7}, std::size_t{1000}, whole.size() - 1}) {
    write_text(damaged, whole.substr(0, size));
    EXPECT_THAT(message(damaged), HasSubstr("damaged.safetensors")) << size;
  }
  auto flipped = whole;
  flipped[whole.size() - 100] ^= 1;
  write_text(damaged, flipped);
  EXPECT_THAT(message(damaged), HasSubstr("digest"));
  write_text(in_folder("other.pth"), "not a zip");
  EXPECT_THAT(message(in_folder("other.pth")), HasSubstr("model card"));
  EXPECT_THAT(message_of([&] { Predictor predictor(weights_, {.threads = -1}); }),
              HasSubstr("threads = -1"));
}

// Results depend only on the model and the image, not on other models, precisions or calls.
TEST_F(OnePredictor, DoesNotDependOnOtherPredictors) {
  const auto photos = make_photos();
  const auto expected = predictor_.predict(ImageFile{photos / "b_tall.jpg"});
  const Predictor coarse(weights_, {.threads = 2, .precision = Precision::bf16});
  const auto in_bf16 = coarse.predict(ImageFile{photos / "b_tall.jpg"});
  EXPECT_TRUE(same(predictor_.predict(ImageFile{photos / "b_tall.jpg"}), expected));
  EXPECT_TRUE(same(coarse.predict(ImageFile{photos / "b_tall.jpg"}), in_bf16));
  EXPECT_FALSE(same(in_bf16, expected));
}

TEST_F(OnePredictor, UsesAllThreadsAfterSingleThreadedPredictor) {
  const auto all = at::get_num_threads();
  const auto photo = make_photos() / "b_tall.jpg";
  const auto expected = predictor_.predict(ImageFile{photo});
  const Predictor every(weights_, {.threads = 0});
  EXPECT_TRUE(same(every.predict(ImageFile{photo}), expected));
  EXPECT_GE(at::get_num_threads(), all);
}

}  // namespace
}  // namespace millrace::testing
