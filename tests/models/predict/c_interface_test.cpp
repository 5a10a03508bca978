// The C interface returns the same results as `trainer predict`, and an error for each kind of
// invalid input.
#include <limits>
#include <thread>

#include "millrace/coco/masks/masks.h"
#include "millrace/models/predict/millrace_predict.h"
#include "tests/models/predict/trained.h"

namespace millrace::testing {
namespace {

std::string error() { return millrace_predict_error(); }

class CInterface : public Trained {
 protected:
  ~CInterface() override {
    for (auto* result : results_) millrace_result_close(result);
    millrace_predict_close(predictor_);
  }

  void open(const std::string& config) {
    weights_ = train(config);
    const millrace_predict_options options = {.threads = 2, .bf16 = 0};
    ASSERT_EQ(millrace_predict_open(weights_.c_str(), &options, &predictor_), MILLRACE_OK)
        << error();
  }

  millrace_result* detect(const fs::path& file) {
    EXPECT_EQ(millrace_predict_file(predictor_, file.c_str(), &results_.emplace_back()),
              MILLRACE_OK)
        << error();
    return results_.back();
  }

  /// Detects objects in one image and returns the status.
  millrace_status status_of(const millrace_image& image) {
    millrace_result* result = reinterpret_cast<millrace_result*>(&result);
    const auto status = millrace_predict_images(predictor_, &image, 1, &result);
    EXPECT_EQ(result == nullptr, status != MILLRACE_OK);
    if (status == MILLRACE_OK) results_.push_back(result);
    return status;
  }

  /// Returns the detections as entries of a results file, for image `id`.
  Json as_json(const millrace_result* result, int id) const {
    auto found = Json::array();
    std::int32_t width = 0, height = 0;
    EXPECT_EQ(millrace_result_size(result, &width, &height), MILLRACE_OK) << error();
    for (std::int32_t i = 0; i < millrace_result_count(result); ++i) {
      millrace_object object;
      EXPECT_EQ(millrace_result_object(result, i, &object), MILLRACE_OK) << error();
      found.push_back(
          {{"image_id", id},
           {"name", millrace_predict_class_name(predictor_, object.label)},
           {"bbox", {object.x1, object.y1, object.x2 - object.x1, object.y2 - object.y1}},
           {"score", object.score}});
      if (object.has_mask == 0) continue;
      const auto* counts = millrace_result_counts(result, i);
      EXPECT_NE(counts, nullptr) << error();
      found.back()["segmentation"] = {{"size", {height, width}}, {"counts", counts}};
      std::vector<std::uint8_t> bitmap(static_cast<std::size_t>(width) * height);
      EXPECT_EQ(millrace_result_bitmap(result, i, bitmap.data(), bitmap.size()), MILLRACE_OK)
          << error();
      EXPECT_EQ(coco::encode_counts(coco::encode(bitmap.data(), height, width)), counts);
    }
    return found;
  }

  fs::path weights_;
  millrace_predictor* predictor_ = nullptr;
  std::vector<millrace_result*> results_;
};

class CInterfaceOfEveryDetector : public CInterface,
                                  public ::testing::WithParamInterface<std::string> {};
INSTANTIATE_TEST_SUITE_P(ByName, CInterfaceOfEveryDetector,
                         ::testing::Values("maskrcnn", "fasterrcnn", "cascadercnn", "retinanet"),
                         [](const auto& one) { return one.param; });

TEST_P(CInterfaceOfEveryDetector, MatchesTrainerPredict) {
  const auto config = "configs/" + GetParam() + ".toml";
  ASSERT_NO_FATAL_FAILURE(open(config));
  const auto photos = make_photos();
  successful(trainer(
      with_settings({"predict", config, "--weights", weights_, photos, "--out", in_folder("seen")},
                    small() + Words{"train.threads=2"})));
  auto expected = read_json(in_folder("seen/detections.json"));
  const auto key = read_json(in_folder("seen/images.json"));
  std::map<int, std::string> names;
  for (const auto& category : key["categories"]) names[category["id"]] = category["name"];
  for (auto& one : expected) {
    one["name"] = names[one["category_id"]];
    one.erase("category_id");
    for (auto& side : one["bbox"]) side = side.get<float>();
    one["score"] = one["score"].get<float>();
  }

  std::vector<std::string> files, bytes;
  for (const auto& image : key["images"]) files.push_back(image["file_name"]);
  for (const auto& file : files) bytes.push_back(read_text(file));
  auto singly = Json::array(), at_once = Json::array();
  std::vector<millrace_image> images;
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (auto& one : as_json(detect(files[i]), static_cast<int>(i) + 1)) singly.push_back(one);
    if (i % 2 == 0)
      images.push_back({.kind = MILLRACE_FILE, .data = files[i].c_str()});
    else
      images.push_back({.kind = MILLRACE_BYTES, .data = bytes[i].data(), .size = bytes[i].size()});
  }
  std::vector<millrace_result*> results(images.size());
  ASSERT_EQ(millrace_predict_images(predictor_, images.data(), images.size(), results.data()),
            MILLRACE_OK)
      << error();
  for (std::size_t i = 0; i < results.size(); ++i) {
    for (auto& one : as_json(results[i], static_cast<int>(i) + 1)) at_once.push_back(one);
    EXPECT_EQ(millrace_result_close(results[i]), MILLRACE_OK);
  }
  EXPECT_EQ(singly, expected);
  EXPECT_EQ(at_once, expected);
}

TEST_F(CInterface, RejectsInvalidImages) {
  ASSERT_NO_FATAL_FAILURE(open("configs/maskrcnn.toml"));
  const auto photos = make_photos();
  const auto expect_refused = [&](const millrace_image& image, const std::string& why,
                                  millrace_status status = MILLRACE_BAD_IMAGE) {
    EXPECT_EQ(status_of(image), status) << why;
    EXPECT_THAT(error(), HasSubstr(why));
  };
  const auto absent = in_folder("absent.jpg").string(), folder = photos.string();
  expect_refused({.kind = MILLRACE_FILE, .data = absent.c_str()}, "absent.jpg");
  expect_refused({.kind = MILLRACE_FILE, .data = folder.c_str()}, folder);
  expect_refused({.kind = MILLRACE_FILE, .data = ""}, "");
  expect_refused({.kind = MILLRACE_FILE}, "NULL", MILLRACE_BAD_ARGUMENT);
  expect_refused({.kind = 7, .data = ""}, "7 is", MILLRACE_BAD_ARGUMENT);

  const auto jpeg = read_text(photos / "a_wide.jpg"), png = read_text(photos / "h.png");
  for (const auto* file : {&jpeg, &png})
    for (const auto size : {std::size_t{0}, std::size_t{1}, std::size_t{30}, file->size() / 2})
      expect_refused({.kind = MILLRACE_BYTES, .data = file->data(), .size = size}, "image 1 of 1");
  auto huge = png;  // declares a width and height of 2^31 - 1 pixels
  huge.replace(16, 8, "\x7F\xFF\xFF\xFF\x7F\xFF\xFF\xFF");
  expect_refused({.kind = MILLRACE_BYTES, .data = huge.data(), .size = huge.size()}, "2147483647");
  const std::string text = "this is not an image";
  expect_refused({.kind = MILLRACE_BYTES, .data = text.data(), .size = text.size()}, "image 1");

  std::vector<std::uint8_t> pixels(300);
  const auto in_memory = [&](std::int32_t width, std::int32_t height, std::size_t stride,
                             const std::string& why) {
    for (const int kind : {MILLRACE_RGB, MILLRACE_BGR})
      expect_refused({kind, width, height, pixels.data(), pixels.size(), stride}, why);
  };
  in_memory(0, 0, 0, "0 x 0");
  in_memory(0, 5, 0, "0 x 5");
  in_memory(-3, 5, 0, "-3 x 5");
  in_memory(10, 10, 29, "29 bytes");
  in_memory(10, 10, 31, "300 bytes");
  in_memory(10, 11, 0, "300 bytes");
  in_memory(10, 2, std::numeric_limits<std::size_t>::max(), "300 bytes");
  in_memory(1 << 19, 1 << 19, 0, " pixels");
  in_memory(std::numeric_limits<std::int32_t>::max(), 1, 0, " pixels");
  EXPECT_EQ(status_of({MILLRACE_RGB, 10, 10, pixels.data(), pixels.size(), 0}), MILLRACE_OK);
  EXPECT_EQ(status_of({MILLRACE_RGB, 1, 1, pixels.data(), 3, 0}), MILLRACE_OK) << error();
}

TEST_F(CInterface, RejectsInvalidArguments) {
  ASSERT_NO_FATAL_FAILURE(open("configs/maskrcnn.toml"));
  const auto photo = (make_photos() / "a_wide.jpg").string();
  const auto* file = photo.c_str();
  millrace_predictor* other = nullptr;
  millrace_result* result = nullptr;
  millrace_object object;
  std::int32_t side = 0;
  const auto refused = [](millrace_status status, const std::string& why) {
    EXPECT_EQ(status, MILLRACE_BAD_ARGUMENT) << why;
    EXPECT_THAT(error(), HasSubstr(why));
  };
  refused(millrace_predict_open(nullptr, nullptr, &other), "model is NULL");
  refused(millrace_predict_open(weights_.c_str(), nullptr, nullptr), "predictor is NULL");
  for (const millrace_predict_options options : {millrace_predict_options{-1, 0}, {5000, 0}})
    refused(millrace_predict_open(weights_.c_str(), &options, &other), "threads = ");
  const millrace_predict_options half = {0, 2};
  refused(millrace_predict_open(weights_.c_str(), &half, &other), "bf16 = 2");
  EXPECT_EQ(other, nullptr);

  refused(millrace_predict_file(nullptr, file, &result), "predictor is NULL");
  refused(millrace_predict_file(predictor_, nullptr, &result), "image is NULL");
  refused(millrace_predict_file(predictor_, file, nullptr), "result is NULL");
  const millrace_image image = {.kind = MILLRACE_FILE, .data = file};
  refused(millrace_predict_images(predictor_, nullptr, 1, &result), "images is NULL");
  refused(millrace_predict_images(predictor_, &image, 1, nullptr), "results is NULL");
  refused(millrace_predict_images(predictor_, &image, SIZE_MAX, &result), "count = ");
  EXPECT_EQ(millrace_predict_images(predictor_, nullptr, 0, nullptr), MILLRACE_OK);

  EXPECT_EQ(millrace_predict_class_count(nullptr), -1);
  EXPECT_EQ(millrace_predict_class_name(nullptr, 0), nullptr);
  const auto classes = millrace_predict_class_count(predictor_);
  EXPECT_GT(classes, 0);
  for (const auto label : {-1, classes}) {
    EXPECT_EQ(millrace_predict_class_name(predictor_, label), nullptr);
    EXPECT_THAT(error(), HasSubstr("label = " + std::to_string(label)));
  }

  const auto* found = detect(file);
  const auto count = millrace_result_count(found);
  ASSERT_GT(count, 0);
  std::vector<std::uint8_t> bitmap(std::size_t{150} * 100);
  for (const auto index : {-1, count, std::numeric_limits<std::int32_t>::min()}) {
    refused(millrace_result_object(found, index, &object), "index = ");
    refused(millrace_result_bitmap(found, index, bitmap.data(), bitmap.size()), "index = ");
    EXPECT_EQ(millrace_result_counts(found, index), nullptr);
  }
  refused(millrace_result_object(found, 0, nullptr), "object is NULL");
  refused(millrace_result_size(found, nullptr, &side), "width is NULL");
  refused(millrace_result_size(found, &side, nullptr), "height is NULL");
  refused(millrace_result_bitmap(found, 0, nullptr, bitmap.size()), "bitmap is NULL");
  refused(millrace_result_bitmap(found, 0, bitmap.data(), bitmap.size() - 1), "size = 14999");
}

TEST_F(CInterface, RejectsClosedAndInvalidHandles) {
  ASSERT_NO_FATAL_FAILURE(open("configs/maskrcnn.toml"));
  const auto photo = (make_photos() / "a_wide.jpg").string();
  int something = 0;
  auto* made_up = reinterpret_cast<millrace_result*>(&something);
  auto* closed = detect(photo);
  results_.clear();
  EXPECT_EQ(millrace_result_close(closed), MILLRACE_OK);
  for (auto* handle : {static_cast<millrace_result*>(nullptr), closed, made_up}) {
    millrace_object object;
    std::int32_t width = 0, height = 0;
    std::uint8_t bitmap = 0;
    EXPECT_EQ(millrace_result_count(handle), -1);
    EXPECT_EQ(millrace_result_size(handle, &width, &height), MILLRACE_BAD_ARGUMENT);
    EXPECT_EQ(millrace_result_object(handle, 0, &object), MILLRACE_BAD_ARGUMENT);
    EXPECT_EQ(millrace_result_bitmap(handle, 0, &bitmap, 1), MILLRACE_BAD_ARGUMENT);
    EXPECT_EQ(millrace_result_counts(handle, 0), nullptr);
    EXPECT_EQ(millrace_result_close(handle), MILLRACE_BAD_ARGUMENT);
    EXPECT_THAT(error(), HasSubstr(handle ? "result is not" : "result is NULL"));
  }
  const auto* kept = detect(photo);
  EXPECT_EQ(millrace_predict_close(predictor_), MILLRACE_OK);
  EXPECT_GT(millrace_result_count(kept), 0) << "results remain valid";
  auto* gone = std::exchange(predictor_, nullptr);
  for (auto* handle : {static_cast<millrace_predictor*>(nullptr), gone,
                       reinterpret_cast<millrace_predictor*>(made_up)}) {
    millrace_result* result = nullptr;
    EXPECT_EQ(millrace_predict_file(handle, photo.c_str(), &result), MILLRACE_BAD_ARGUMENT);
    EXPECT_EQ(millrace_predict_class_count(handle), -1);
    EXPECT_EQ(millrace_predict_class_name(handle, 0), nullptr);
    EXPECT_EQ(millrace_predict_close(handle), MILLRACE_BAD_ARGUMENT);
    EXPECT_THAT(error(), HasSubstr(handle ? "predictor is not" : "predictor is NULL"));
  }
}

TEST_F(CInterface, RejectsDamagedModels) {
  ASSERT_NO_FATAL_FAILURE(open("configs/maskrcnn.toml"));
  millrace_predictor* other = nullptr;
  const auto refused = [&](const fs::path& model) {
    EXPECT_EQ(millrace_predict_open(model.c_str(), nullptr, &other), MILLRACE_BAD_MODEL);
    EXPECT_THAT(error(), HasSubstr(model.filename().string()));
    EXPECT_EQ(other, nullptr);
  };
  refused(in_folder("absent.safetensors"));
  const auto strange = in_folder("a\x1b[2J.safetensors");
  EXPECT_EQ(millrace_predict_open(strange.c_str(), nullptr, &other), MILLRACE_BAD_MODEL);
  EXPECT_THAT(error(), AllOf(HasSubstr("a\\x1b[2J"), Not(HasSubstr("\x1b"))));
  const auto whole = read_text(weights_ / "model.safetensors");
  const auto file = in_folder("cut.safetensors");
  for (const auto size : {std::size_t{0}, std::size_t{9}, whole.size() / 2, whole.size() - 1}) {
    write_text(file, whole.substr(0, size));
    refused(file);
  }
  write_text(file, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F{}");
  refused(file);
  // A model card that names a detector unknown to this library, with a name of equal length.
  auto renamed = whole;
  const auto type = renamed.find("maskrcnn");
  ASSERT_NE(type, std::string::npos);
  renamed.replace(type, 8, "taskrcnn");
  write_text(file, renamed);
  EXPECT_EQ(millrace_predict_open(file.c_str(), nullptr, &other), MILLRACE_BAD_MODEL);
  EXPECT_THAT(error(), HasSubstr("taskrcnn"));
}

TEST_F(CInterface, KeepsErrorsPerThread) {
  ASSERT_NO_FATAL_FAILURE(open("configs/maskrcnn.toml"));
  const auto photo = (make_photos() / "a_wide.jpg").string();
  const auto expected = as_json(detect(photo), 1);
  EXPECT_EQ(millrace_result_count(nullptr), -1);
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      EXPECT_EQ(error(), "");
      millrace_result* result = nullptr;
      EXPECT_EQ(millrace_predict_file(predictor_, photo.c_str(), &result), MILLRACE_OK);
      EXPECT_EQ(as_json(result, 1), expected);
      EXPECT_EQ(millrace_result_close(result), MILLRACE_OK);
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(error(), "result is NULL");
}

}  // namespace
}  // namespace millrace::testing
