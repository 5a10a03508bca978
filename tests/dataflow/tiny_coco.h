// Training data for tests (small generated images or real photos), and helpers for batches.
#pragma once

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <opencv2/core.hpp>
#include <span>
#include <string>
#include <vector>

#include "millrace/base/config.h"
#include "millrace/base/random.h"
#include "millrace/dataflow/detection_flows.h"
#include "millrace/dataflow/image/buffer_pool.h"
#include "millrace/dataflow/sources/train_data.h"
#include "tests/support/data.h"
#include "tests/support/pictures.h"
#include "tests/support/scratch.h"

namespace millrace::testing {

/// Prepares OpenCV in the same way as programs that run flows.
inline const bool opencv_is_prepared = [] {
  prepare_opencv();
  return true;
}();

/// Options of a generated data set: `count` JPEGs of several sizes under `train2017` with
/// annotations. Each image has an object with a polygon, and every third image also a crowd; the
/// categories "cat" and "dog" alternate; the last image has no object.
class TinyCoco : public DataOptions {
 public:
  explicit TinyCoco(int count) {
    namespace fs = std::filesystem;
    fs::create_directories(folder_ / "annotations");
    fs::create_directories(folder_ / "train2017");
    json_["categories"] = {{{"id", 17}, {"name", "cat"}}, {{"id", 18}, {"name", "dog"}}};
    json_["images"] = nlohmann::json::array();
    json_["annotations"] = nlohmann::json::array();
    for (int i = 0; i < count; ++i) add(i, i + 1 < count);
    std::ofstream(folder_ / "annotations/instances_train2017.json") << json_;
    root = folder_.path().string();
    val = train;
    batch_size = 3;
    threads = 2;
    short_side = {40, 48, 56};
    max_side = 80;
  }

  std::filesystem::path image(int i) const { return folder_ / "train2017" / name(i); }
  const DataOptions& options() const { return *this; }

 private:
  static std::string name(int i) { return "picture" + std::to_string(i) + ".jpg"; }

  void add(int i, bool with_object) {
    Rng rng{42, static_cast<std::uint64_t>(i)};
    const auto width = static_cast<int>(rng.between(30, 70));
    const auto height = static_cast<int>(rng.between(30, 70));
    cv::Mat pixels(height, width, CV_8UC3);
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x)
        pixels.at<cv::Vec3b>(y, x) = {static_cast<std::uint8_t>(3 * x),
                                      static_cast<std::uint8_t>(3 * y),
                                      static_cast<std::uint8_t>(20 * i)};
    save_picture(image(i), pixels);
    json_["images"].push_back(
        {{"id", 100 + i}, {"file_name", name(i)}, {"width", width}, {"height", height}});
    if (!with_object) return;
    object(i, {{"segmentation", {{5, 5, 25, 5, 25, 20, 5, 22}}}, {"iscrowd", 0}});
    if (i % 3 == 0)
      object(i, {{"segmentation",
                  {{"size", {height, width}}, {"counts", {10, 5, height * width - 15}}}},
                 {"iscrowd", 1}});
  }

  void object(int i, nlohmann::json fields) {
    fields["id"] = json_["annotations"].size() + 1;
    fields["image_id"] = 100 + i;
    fields["category_id"] = 17 + i % 2;
    fields["bbox"] = {5, 5, 20, 17};
    fields["area"] = 340;
    json_["annotations"].push_back(std::move(fields));
  }

  Scratch folder_;
  nlohmann::json json_;
};

/// Returns options for the real photos of coco_mini, resized to these sizes. The test must use
/// MILLRACE_NEEDS_DATA.
inline DataOptions coco_mini(Options::Ints short_side = {200, 320}, std::int64_t max_side = 533) {
  DataOptions options;
  options.root = (data_folder() / "coco_mini").string();
  options.short_side = std::move(short_side);
  options.max_side = max_side;
  options.threads = 2;
  return options;
}

/// Starts a training flow over the data set of the options.
inline std::unique_ptr<DataFlow<Batch>> train_flow(const DataOptions& options,
                                                   std::span<const Config> stages = {},
                                                   std::uint64_t seed = 1, Share share = {},
                                                   const Cursor& start = {}) {
  return start_train_flow(options, stages, open_train_data(options, {}), seed, share, start);
}

/// Parses a TOML list, "stages = [ { type = 'read' }, ... ]", and returns its tables.
inline std::vector<Config> tables_of(const std::string& toml) {
  return std::get<Config::Array>(parse_config(toml, "test.toml").table().front().second.data);
}

/// Returns the stages read, decode, `middle`, group_by_aspect_ratio, pad and `last`. The arguments
/// are TOML: "{ type = 'blur' }, " and ", { type = 'dump' }".
inline std::vector<Config> pipeline(const std::string& middle, const std::string& last = "") {
  return tables_of("stages = [ { type = 'read' }, { type = 'decode' }, " + middle +
                   "{ type = 'group_by_aspect_ratio' }, { type = 'pad' }" + last + " ]");
}
/// The middle stages of the default list.
inline const std::string kFlipAndResize = "{ type = 'flip' }, { type = 'resize_shortest_edge' }, ";

/// Returns the digests of the next `count` batches.
inline std::vector<std::uint64_t> digests(DataFlow<Batch>& flow, int count) {
  std::vector<std::uint64_t> result;
  for (; count > 0; --count) result.push_back(digest(flow.next()->value));
  return result;
}

}  // namespace millrace::testing
