#include "millrace/doctor/check_objects.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "millrace/doctor/check_each.h"

namespace millrace::coco {
namespace {

using enum Severity;

constexpr FindingKind kUnusable{"box-unusable", error, "boxes without an area inside their image",
                                "the object is left out of training; in evaluation it is missed"};
constexpr FindingKind kThin{
    "box-thin", warning, "boxes less than a pixel wide or high inside their image",
    "the object is left out of training; in evaluation it is missed; mostly a slip of the mouse"};
constexpr FindingKind kIgnored{"object-ignored", note, "objects that are marked 'ignore'",
                               "they are left out of training; evaluation expects them, unless "
                               "'iscrowd' says otherwise, as pycocotools does"};
constexpr FindingKind kOutside{"box-outside", warning,
                               "boxes that reach more than a pixel beyond their image",
                               "they are clipped for training, but scored as written"};
constexpr FindingKind kLong{"box-elongated", note, "boxes more than ten times as long as wide",
                            "few anchors, or none, come near; such objects are learned badly"};
constexpr FindingKind kEmpty{"shape-empty", error, "shapes without an area inside their image",
                             "the mask branch learns that there is nothing in the box"};
constexpr FindingKind kSubpixel{"shape-without-pixels", warning,
                                "polygons so thin that no pixel is inside",
                                "scored on masks, the object cannot be found"};
constexpr FindingKind kShapeOutside{"shape-outside", warning,
                                    "polygons that reach more than a pixel beyond their image",
                                    "what lies outside is cut away for training and for scoring"};
constexpr FindingKind kMissing{"shape-missing", warning,
                               "objects without a shape where others have one",
                               "the mask branch does not learn from them; scored on masks, they "
                               "cannot be found"};
constexpr FindingKind kOff{
    "box-off-shape", warning, "boxes more than three pixels off the box around their shape",
    "box and mask are learned, and scored, as two different objects would be"};
constexpr FindingKind kApart{"box-apart-from-shape", error,
                             "boxes that share less than half with the box around their shape",
                             "the mask branch learns a part of the shape, or none, as the whole"};
constexpr FindingKind kArea{"area-off-shape", warning,
                            "'area' fields more than a tenth off the area of the shape",
                            "the object may be scored as of another size: small, medium or large"};
constexpr FindingKind kNoArea{"area-not-positive", warning,
                              "'area' fields that are zero or less for objects that have an area",
                              "the object is scored as small; below zero, it is ignored"};
constexpr FindingKind kCrowdPolygon{
    "crowd-polygon", note, "crowd regions drawn as polygons",
    "they are ignored in training and scoring like any crowd; is 'iscrowd' meant?"};
constexpr FindingKind kCrowdEmpty{
    "crowd-empty", warning, "crowd regions without a pixel inside",
    "scored on masks, what is found there counts as wrong instead of being ignored"};
constexpr FindingKind kMaskNoCrowd{"mask-not-crowd", note,
                                   "run-length masks of objects that are no crowd",
                                   "they are learned like any object; some tools take every "
                                   "run-length mask for a crowd"};
constexpr FindingKind kTwice{"object-twice", warning,
                             "objects with the category and box of another in their image",
                             "the object counts twice in training, and in scoring one of the two "
                             "is always missed"};
constexpr FindingKind kIdZero{"annotation-id-zero", warning, "annotations with the id 0",
                              "pycocotools, and so the scores here, count the object as never "
                              "found"};
constexpr FindingKind kEmptyImage{
    "image-empty", note, "images without a usable object that is no crowd",
    "with data.filter_empty they stay out of training; in evaluation, all found there is wrong"};

constexpr double kFar = 1;          // pixels beyond the border: further than rounding explains
constexpr double kOffset = 3;       // pixels between box and shape
constexpr double kLeastIou = 0.5;   // below, box and shape are not of one object
constexpr double kElongated = 10;   // long to short side
constexpr double kAreaShare = 0.1;  // as a share of the shape's area
constexpr double kAreaLeast = 4;    // pixels; the area of a tiny shape is a matter of taste

struct Bounds {
  double x1 = std::numeric_limits<double>::infinity(), y1 = x1, x2 = -x1, y2 = -x1;

  double area() const { return std::max(0., x2 - x1) * std::max(0., y2 - y1); }
  Bounds in(const Bounds& other) const {
    return {std::max(x1, other.x1), std::max(y1, other.y1), std::min(x2, other.x2),
            std::min(y2, other.y2)};
  }
};

Bounds bounds_of(const Segmentation& shape) {
  Bounds bounds;
  if (const auto* mask = std::get_if<Rle>(&shape)) {
    const Box box = bounding_box(*mask);
    return {box.x1, box.y1, box.x2, box.y2};
  }
  for (const Polygon& polygon : std::get<std::vector<Polygon>>(shape))
    for (std::size_t i = 0; i < polygon.size(); i += 2) {
      bounds.x1 = std::min(bounds.x1, polygon[i]), bounds.x2 = std::max(bounds.x2, polygon[i]);
      bounds.y1 = std::min(bounds.y1, polygon[i + 1]);
      bounds.y2 = std::max(bounds.y2, polygon[i + 1]);
    }
  return bounds;
}

/// How far, and where, bounds reach beyond an image; negative: nowhere.
std::pair<double, std::string_view> overhang(const Bounds& bounds, const Image& image) {
  return std::max({std::pair<double, std::string_view>{-bounds.x1, "left"},
                   {-bounds.y1, "top"},
                   {bounds.x2 - image.width, "right"},
                   {bounds.y2 - image.height, "bottom"}});
}

/// The furthest that a side of the one is from that of the other.
double distance(const Bounds& a, const Bounds& b) {
  return std::max(
      {std::abs(a.x1 - b.x1), std::abs(a.y1 - b.y1), std::abs(a.x2 - b.x2), std::abs(a.y2 - b.y2)});
}

double iou(const Bounds& a, const Bounds& b) {
  const double shared = a.in(b).area();
  return shared > 0 ? shared / (a.area() + b.area() - shared) : 0;
}

/// Checks the objects of one image after the other.
class Checks {
 public:
  Checks(const Dataset& data, std::vector<bool> counts, bool with_shapes)
      : data_(data),
        counts_(std::move(counts)),
        with_shapes_(with_shapes),
        has_shapes_(std::ranges::any_of(data.annotations, [](const Annotation& one) {
          return one.shape.kind != ShapeKind::none;
        })) {}

  /// Whether the image has an object to learn.
  bool check(const Image& image, Findings& findings) const {
    bool usable = false;
    std::vector<const Annotation*> objects;
    for (const Annotation& object : data_.objects(image)) {
      if (!counts_[static_cast<std::size_t>(data_.category_index(object.category_id))]) continue;
      objects.push_back(&object);
      const auto tell = [&](const FindingKind& kind, const auto& what) {
        findings.add(kind, [&] { return example(object, image, what()); });
      };
      const bool has_area = clipped_box(object, image).has_area();
      usable = usable || (coco::has_pixels(object, image) && !object.crowd && !object.ignored);
      if (object.id == 0) tell(kIdZero, [] { return ""; });
      if (object.ignored) tell(kIgnored, [] { return ""; });
      check_box(object, image, has_area, tell);
      if (with_shapes_) check_shape(object, image, has_area, tell);
    }
    find_twins(objects, image, findings);
    if (!usable)
      findings.add(kEmptyImage, [&] {
        return FindingExample{.image = image.id, .file = std::string(data_.text(image.file_name))};
      });
    return usable;
  }

 private:
  FindingExample example(const Annotation& object, const Image& image, std::string what) const {
    return {.annotation = object.id,
            .image = image.id,
            .file = std::string(data_.text(image.file_name)),
            .what = std::move(what)};
  }

  template <typename F>
  void check_box(const Annotation& object, const Image& image, bool has_area, const F& tell) const {
    const auto [x, y, width, height] = object.bbox;
    const auto text = [&, x = x, y = y, width = width, height = height] {
      return fmt::format("box [{:g}, {:g}, {:g}, {:g}] in {} x {}", x, y, width, height,
                         image.width, image.height);
    };
    if (!has_area) return tell(kUnusable, text);
    if (const auto [far, side] = overhang(box_of(object), image); far > kFar)
      tell(kOutside, [&, by = far, at = side] {
        return fmt::format("{}: {:.4g} pixels beyond the {}", text(), by, at);
      });
    const double longer = std::max(width, height), shorter = std::min(width, height);
    if (!coco::has_pixels(object, image))
      tell(kThin, text);
    else if (longer > kElongated * shorter)
      tell(kLong, text);
    if (object.area <= 0)
      tell(kNoArea, [&] { return fmt::format("area {:g}, {}", object.area, text()); });
  }

  template <typename F>
  void check_shape(const Annotation& object, const Image& image, bool has_area,
                   const F& tell) const {
    if (object.shape.kind == ShapeKind::none) {
      if (has_shapes_) tell(kMissing, [] { return ""; });
      return;
    }
    const auto plain = [] { return ""; };
    if (object.shape.kind == ShapeKind::polygons && object.crowd) tell(kCrowdPolygon, plain);
    if (object.shape.kind == ShapeKind::mask && !object.crowd) tell(kMaskNoCrowd, plain);

    const Segmentation shape = data_.segmentation(object);
    const double area = shape_area(shape);
    const Bounds around = bounds_of(shape);
    if (const auto [far, side] = overhang(around, image); far > kFar)
      tell(kShapeOutside,
           [by = far, at = side] { return fmt::format("{:.4g} pixels beyond the {}", by, at); });
    if (object.crowd) {  // its shape is only scored on
      if (!holds_pixels(shape, image)) tell(kCrowdEmpty, plain);
      return;
    }
    if (!holds_pixels(shape, image))
      return tell(area > 0 && around.in(whole(image)).area() > 0 ? kSubpixel : kEmpty, plain);
    if (has_area) compare(box_of(object), around, image, tell);
    if (object.area > 0 && std::abs(object.area - area) > std::max(kAreaLeast, kAreaShare * area))
      tell(kArea,
           [&] { return fmt::format("area {:.6g}, of the shape {:.6g}", object.area, area); });
  }

  template <typename F>
  void compare(Bounds box, Bounds around, const Image& image, const F& tell) const {
    box = box.in(whole(image)), around = around.in(whole(image));
    const double off = distance(box, around);
    if (off <= kOffset) return;
    const double shared = iou(box, around);
    tell(shared < kLeastIou ? kApart : kOff,
         [&] { return fmt::format("{:.4g} pixels off, IoU {:.2f}", off, shared); });
  }

  void find_twins(std::vector<const Annotation*>& objects, const Image& image,
                  Findings& findings) const {
    const auto key = [](const Annotation* one) {
      return std::pair(one->category_id, std::to_array(one->bbox));
    };
    std::ranges::stable_sort(objects, {}, key);
    for (std::size_t i = 1; i < objects.size(); ++i) {
      if (key(objects[i]) != key(objects[i - 1])) continue;
      if (objects[i]->crowd || objects[i - 1]->crowd) continue;
      findings.add(kTwice, [&] {
        return example(*objects[i], image, fmt::format("as annotation {}", objects[i - 1]->id));
      });
    }
  }

  static Bounds box_of(const Annotation& object) {
    const auto [x, y, width, height] = object.bbox;
    return {x, y, x + width, y + height};
  }

  static Bounds whole(const Image& image) {
    return {0, 0, double(image.width), double(image.height)};
  }

  static bool holds_pixels(const Segmentation& shape, const Image& image) {
    if (const auto* mask = std::get_if<Rle>(&shape)) return coco::area(*mask) > 0;
    return coco::area(from_polygons(std::get<std::vector<Polygon>>(shape),
                                    static_cast<std::uint32_t>(image.height),
                                    static_cast<std::uint32_t>(image.width))) > 0;
  }

  const Dataset& data_;
  std::vector<bool> counts_;  // by Dataset::category_index
  bool with_shapes_;
  bool has_shapes_;
};

}  // namespace

std::size_t check_objects(const Dataset& data, std::span<const std::int64_t> category_ids,
                          bool with_shapes, Findings& findings) {
  std::vector<bool> counts;
  for (const Category& category : data.categories)
    counts.push_back(std::ranges::count(category_ids, category.id) > 0);
  const Checks checks(data, std::move(counts), with_shapes);
  std::atomic<std::size_t> usable = 0;
  check_each(data.images.size(), findings,
             [&](std::size_t i, Findings& part) { usable += checks.check(data.images[i], part); });
  return usable;
}

}  // namespace millrace::coco
