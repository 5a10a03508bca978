#include "millrace/dataflow/detection/check_messages.h"

#include <fmt/format.h>

#include <opencv2/core.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "millrace/base/text.h"
#include "millrace/dataflow/detection/detection_stages.h"

namespace millrace {
namespace {

constexpr float kRounding = 1;  // pixels that a box may extend beyond its image

[[noreturn]] void fail(const std::string& name, const std::string& why) {
  throw std::invalid_argument(name.empty() ? why : name + ": " + why);
}

std::string size_text(cv::Size size) { return fmt::format("{} x {}", size.width, size.height); }

/// Returns e.g. "1 channel of 8U".
std::string type_text(const cv::Mat& pixels) {
  return fmt::format("{} of {}", counted(pixels.channels(), "channel"),
                     cv::depthToString(pixels.depth()));
}

void check_lengths(const Instances& objects, const std::string& name) {
  const auto& [boxes, classes, crowd, segmentations] = objects;
  if (classes.size() == boxes.size() && crowd.size() == boxes.size() &&
      segmentations.size() == boxes.size())
    return;
  fail(name, fmt::format("has {} boxes, {} classes, {} crowd flags and {} segmentations; the "
                         "numbers must be equal",
                         boxes.size(), classes.size(), crowd.size(), segmentations.size()));
}

void check_box(const Box& box, cv::Size image, const std::string& name) {
  const auto inside = [](float low, float high, int side) {  // also false for NaN
    return low >= -kRounding && low <= high && high <= static_cast<float>(side) + kRounding;
  };
  if (inside(box.x1, box.x2, image.width) && inside(box.y1, box.y2, image.height)) return;
  fail(name, fmt::format("has the box [{:g}, {:g}, {:g}, {:g}] outside its image of {} pixels; a "
                         "stage that changes an image must change its objects too",
                         box.x1, box.y1, box.x2, box.y2, size_text(image)));
}

void check_shape(const coco::Segmentation& shape, cv::Size image, const std::string& name) {
  if (const auto* mask = std::get_if<coco::Rle>(&shape)) {
    const cv::Size size(static_cast<int>(mask->width), static_cast<int>(mask->height));
    if (size != image)
      fail(name, fmt::format("has a mask of {} pixels, but an image of {}", size_text(size),
                             size_text(image)));
  } else if (const auto* polygons = std::get_if<std::vector<coco::Polygon>>(&shape)) {
    for (const auto& polygon : *polygons)
      if (polygon.size() < 6 || polygon.size() % 2 != 0)
        fail(name, fmt::format("has a polygon of {} numbers; expected at least three points x y",
                               polygon.size()));
  }
}

/// Checks objects. `image` is the size of their image; empty if unknown.
void check_objects(const Instances& objects, cv::Size image, std::size_t classes,
                   const std::string& name) {
  check_lengths(objects, name);
  for (const auto label : objects.classes)
    if (label < 0 || static_cast<std::size_t>(label) >= classes)
      fail(name, fmt::format(
                     "has an object of class {}; valid: {}", label,
                     classes == kAnyClasses ? "0 and above" : fmt::format("0 to {}", classes - 1)));
  if (image.empty()) return;
  for (const auto& box : objects.boxes) check_box(box, image, name);
  for (const auto& shape : objects.segmentations) check_shape(shape, image, name);
}

/// Calls `check` with each message that the stage yields, and with true if its input had an image.
template <class T, class F>
void check_output(Stage& stage, F check) {
  const auto had_image = [is_sample = stage.takes == MessageType::of<Sample>()](const Message& in) {
    return is_sample && !in.peek<Sample>().image.empty();
  };
  const auto checked = [check](Message out, bool had) {
    if (out) check(out.peek<T>(), had);
    return out;
  };
  if (auto* map = std::get_if<Map>(&stage.work)) {
    if (map->filters) return;  // filters change no sample
    map->function = [=, function = std::move(map->function)](Message in, Rng& rng) {
      const bool had = had_image(in);
      return checked(function(std::move(in), rng), had);
    };
  } else if (auto* mix = std::get_if<Mix>(&stage.work)) {
    mix->function = [=, function = std::move(mix->function)](
                        Message in, std::vector<Message> others, Rng& rng) {
      const bool had = had_image(in);
      return checked(function(std::move(in), std::move(others), rng), had);
    };
  }
}

}  // namespace

void check_sample(const Sample& sample, std::size_t classes) {
  const auto& image = sample.image;
  if (!image.empty() && image.stored_pixels().type() != CV_8UC3)
    fail(sample.path,
         fmt::format("has an image of {} pixels with {}; expected 3 channels of CV_8U (RGB)",
                     size_text(image.stored_pixels().size()), type_text(image.stored_pixels())));
  check_objects(sample.objects,
                image.empty() ? cv::Size(sample.width, sample.height) : image.size(), classes,
                sample.path);
}

void check_batch(const Batch& batch, std::size_t classes) {
  if (batch.images.size() != batch.objects.size())
    fail("", fmt::format("the batch has {} images, but objects of {}", batch.images.size(),
                         batch.objects.size()));
  if (!batch.pixels || batch.width < 1 || batch.height < 1) fail("", "the batch has no pixels");
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto& image = batch.images[i];
    const auto name = fmt::format("image {} of the batch", image.image_id);
    const cv::Size size(image.width, image.height);
    if (size.empty() || size.width > batch.width || size.height > batch.height)
      fail(name, fmt::format("is {} pixels, but the batch only {}", size_text(size),
                             size_text({batch.width, batch.height})));
    check_objects(batch.objects[i], size, classes, name);
  }
}

Stage checked(Stage stage, std::size_t classes) {
  if (stage.yields == MessageType::of<Sample>())
    check_output<Sample>(stage, [classes](const Sample& sample, bool had_image) {
      if (had_image && sample.image.empty()) fail(sample.path, "has lost its image");
      check_sample(sample, classes);
    });
  else if (stage.yields == MessageType::of<Batch>())
    check_output<Batch>(stage,
                        [classes](const Batch& batch, bool) { check_batch(batch, classes); });
  return stage;
}

}  // namespace millrace
