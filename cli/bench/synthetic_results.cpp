#include "millrace/cli/bench/synthetic_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "millrace/base/files.h"
#include "millrace/base/random.h"
#include "millrace/coco/data/detections.h"

namespace millrace::cli {
namespace {

constexpr int kCategories = 80;
constexpr int kMostObjects = 100;  // per image; object ids are image id * kMostObjects + index
constexpr std::array<std::array<std::uint32_t, 2>, 5> kSizes = {
    {{640, 480}, {480, 640}, {640, 427}, {500, 375}, {427, 640}}};  // width, height

struct Object {
  std::int64_t category = 1;
  coco::Polygon outline;
  coco::Xywh box{};
};

double hundredths(double value) { return std::round(value * 100) / 100; }

/// Returns a ragged polygon around a point, clipped to the image.
Object blob(Rng& rng, std::int64_t category, double x, double y, double radius, double width,
            double height) {
  Object made{category, {}, {}};
  const auto points = rng.between(12, 36);
  for (std::int64_t i = 0; i < points; ++i) {
    const double angle =
        2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(points);
    const double r = radius * rng.uniform(.75, 1);
    made.outline.push_back(hundredths(std::clamp(x + r * std::cos(angle), 0., width)));
    made.outline.push_back(hundredths(std::clamp(y + r * std::sin(angle), 0., height)));
  }
  double low[2] = {width, height}, high[2] = {0, 0};
  for (std::size_t i = 0; i < made.outline.size(); ++i) {
    low[i % 2] = std::min(low[i % 2], made.outline[i]);
    high[i % 2] = std::max(high[i % 2], made.outline[i]);
  }
  for (int k = 0; k < 2; ++k) made.box[k] = low[k], made.box[k + 2] = hundredths(high[k] - low[k]);
  return made;
}

/// Returns a random category; a few categories have most of the objects.
std::int64_t category(Rng& rng) {
  return 1 + static_cast<std::int64_t>(kCategories * std::pow(rng.uniform(), 2.5));
}

/// One image with its objects and detections.
class Scene {
 public:
  Scene(Rng& rng, std::int64_t image_id) : rng_(rng), id_(image_id) {
    const auto& size = kSizes[rng.below(kSizes.size())];
    width_ = size[0], height_ = size[1];
    const double mean = 7.36;  // geometric distribution, close to val2017's
    const auto count = std::floor(std::log1p(-rng.uniform()) / std::log(mean / (1 + mean)));
    for (int i = 0; i < std::min<int>(kMostObjects, static_cast<int>(count)); ++i) {
      const double radius = 4 * std::pow(50., rng.uniform());  // pixels: 4 to 200
      objects_.push_back(blob(rng, category(rng), rng.uniform(0, width_), rng.uniform(0, height_),
                              radius, width_, height_));
    }
  }

  void write_image(std::string& out) const {
    out += fmt::format(
        R"({{"license": 4, "file_name": "{0:012}.jpg", "coco_url": )"
        R"("http://images.cocodataset.org/val2017/{0:012}.jpg", "height": {1}, "width": {2}, )"
        R"("date_captured": "2013-11-14 11:18:45", "id": {0}}})",
        id_, height_, width_);
  }

  void write_objects(std::string& out) const {
    for (std::size_t i = 0; i < objects_.size(); ++i) {
      const Object& one = objects_[i];
      const bool crowd = i % 97 == 96 || (i == 0 && id_ % 14 == 0);  // 1 % of all objects
      const auto mask = coco::from_polygons({&one.outline, 1}, height_, width_);
      const auto shape = crowd ? fmt::format(R"({{"counts": [{}], "size": [{}, {}]}})",
                                             fmt::join(mask.counts, ", "), height_, width_)
                               : fmt::format("[[{}]]", fmt::join(one.outline, ", "));
      out += fmt::format(R"({}{{"segmentation": {}, "area": {}, "iscrowd": {}, "image_id": {}, )"
                         R"("bbox": [{}], "category_id": {}, "id": {}}})",
                         out.empty() ? "" : ", ", shape, coco::area(mask), crowd ? 1 : 0, id_,
                         fmt::join(one.box, ", "), one.category,
                         id_ * kMostObjects + static_cast<std::int64_t>(i));
    }
  }

  void detect(std::int64_t count, coco::Detections& boxes, coco::Detections& masks) {
    for (std::int64_t k = 0; k < count; ++k) {
      const bool of_object = !objects_.empty() && rng_.chance(.35);
      Object found;
      double score = rng_.uniform(.05, .5);
      if (of_object) {
        found = objects_[rng_.below(objects_.size())];
        const double shift = rng_.uniform(0, .15) * std::max(found.box[2], found.box[3]);
        for (std::size_t i = 0; i < found.outline.size(); ++i) {
          const double side = i % 2 ? height_ : width_;
          found.outline[i] = std::clamp(found.outline[i] + shift * (i % 2 ? 1 : -1), 0., side);
        }
        found.box[0] = hundredths(std::max(0., found.box[0] - shift));
        found.box[1] = hundredths(found.box[1] + shift);
        score = rng_.uniform(.3, 1);
        if (rng_.chance(.1)) found.category = category(rng_);
      } else {
        found = blob(rng_, category(rng_), rng_.uniform(0, width_), rng_.uniform(0, height_),
                     4 * std::pow(40., rng_.uniform()), width_, height_);
      }
      coco::Detection one{id_, found.category, found.box, std::round(score * 1000) / 1000, {}};
      boxes.add(one);
      one.bbox.reset();
      one.mask = coco::from_polygons({&found.outline, 1}, height_, width_);
      masks.add(one);
    }
  }

 private:
  Rng& rng_;
  std::int64_t id_;
  std::uint32_t width_ = 0, height_ = 0;
  std::vector<Object> objects_;
};

}  // namespace

SyntheticResults write_synthetic_results(const std::filesystem::path& folder,
                                         const SyntheticResultsOptions& options) {
  make_writable_folder(folder);
  const SyntheticResults files{folder / "instances.json", folder / "boxes.json",
                               folder / "masks.json"};
  std::string images, objects, categories;
  coco::Detections boxes, masks;
  for (std::int64_t id = 1; id <= options.images; ++id) {
    Rng rng{options.seed, static_cast<std::uint64_t>(id)};
    Scene scene(rng, id);
    if (id > 1) images += ", ";
    scene.write_image(images);
    scene.write_objects(objects);
    scene.detect(options.detections, boxes, masks);
  }
  for (int k = 1; k <= kCategories; ++k)
    categories += fmt::format(R"({}{{"id": {}, "name": "class{}"}})", k > 1 ? ", " : "", k, k);
  write_file_atomically(
      files.truth, fmt::format(R"({{"images": [{}], "annotations": [{}], "categories": [{}]}})",
                               images, objects, categories));
  if (options.detections > 0) {
    coco::write_detections(files.boxes, boxes);
    coco::write_detections(files.masks, masks);
  }
  return files;
}

}  // namespace millrace::cli
