#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>

#include "millrace/coco/data/bounds.h"
#include "millrace/tools/data/check_each.h"
#include "millrace/tools/data/checks.h"

namespace millrace::coco {
namespace {

using enum Severity;
using namespace std::string_view_literals;

constexpr FindingKind kUnusable{"box-unusable", error, "boxes with no area inside their image",
                                "the object is omitted from training and missed in evaluation"};
constexpr FindingKind kThin{
    "box-thin", warning, "boxes less than one pixel wide or high inside their image",
    "the object is omitted from training and missed in evaluation; usually an accidental click"};
constexpr FindingKind kIgnored{"object-ignored", note, "objects marked 'ignore'",
                               "they are omitted from training; evaluation counts them unless "
                               "'iscrowd' is set, as in pycocotools"};
constexpr FindingKind kOutside{"box-outside", warning,
                               "boxes that extend more than one pixel beyond their image",
                               "they are clipped for training but scored unclipped"};
constexpr FindingKind kLong{"box-elongated", note, "boxes more than ten times as long as wide",
                            "few or no anchors match; such objects are learned poorly"};
constexpr FindingKind kEmpty{"shape-empty", error, "shapes with no area inside their image",
                             "the mask head learns an empty mask for the box"};
constexpr FindingKind kSubpixel{"shape-without-pixels", warning,
                                "polygons too thin to contain a pixel",
                                "the object cannot be matched in mask evaluation"};
constexpr FindingKind kShapeOutside{"shape-outside", warning,
                                    "polygons that extend more than one pixel beyond their image",
                                    "the part outside is cut off for training and evaluation"};
constexpr FindingKind kMissing{
    "shape-missing", warning, "objects without a shape although others have one",
    "the mask head does not learn from them; they cannot be matched in mask evaluation"};
constexpr FindingKind kOff{"box-off-shape", warning,
                           "boxes more than three pixels off the bounding box of their shape",
                           "box and mask are learned and scored inconsistently"};
constexpr FindingKind kApart{"box-apart-from-shape", error,
                             "boxes with IoU under 0.5 with the bounding box of their shape",
                             "the mask head learns only a part of the shape, or none of it"};
constexpr FindingKind kArea{
    "area-off-shape", warning, "'area' values more than 10 % off the area of the shape",
    "the object may be scored in the wrong size group (small, medium, large)"};
constexpr FindingKind kNoArea{"area-not-positive", warning,
                              "'area' values of zero or less for objects that have an area",
                              "the object is scored as small, or ignored if negative"};
constexpr FindingKind kCrowdPolygon{"crowd-polygon", note, "crowd regions drawn as polygons",
                                    "they are ignored in training and evaluation like any crowd "
                                    "region; check that 'iscrowd' is intended"};
constexpr FindingKind kCrowdEmpty{
    "crowd-empty", warning, "crowd regions without a pixel inside",
    "in mask evaluation, detections there count as false positives instead of being ignored"};
constexpr FindingKind kMaskNoCrowd{
    "mask-not-crowd", note, "run-length masks of objects that are not crowds",
    "they are learned like any object; some tools treat every run-length mask as a crowd"};
constexpr FindingKind kTwice{
    "object-twice", warning, "objects with the same category and box as another in the image",
    "the object counts twice in training; in evaluation one of the two is always missed"};
constexpr FindingKind kIdZero{
    "annotation-id-zero", warning, "annotations with id 0",
    "pycocotools, and therefore the scores here, always count the object as missed"};
constexpr FindingKind kEmptyImage{"image-empty", note, "images without a usable non-crowd object",
                                  "data.filter_empty omits them from training; in evaluation all "
                                  "their detections are false positives"};

constexpr double kFar = 1;          // pixels beyond the border that rounding does not explain
constexpr double kOffset = 3;       // maximum distance between box and shape, in pixels
constexpr double kLeastIou = 0.5;   // minimum IoU of a box and its shape
constexpr double kElongated = 10;   // ratio of long to short side
constexpr double kAreaShare = 0.1;  // tolerance of `area`, as a fraction of the shape's area
constexpr double kAreaLeast = 4;    // tolerance in pixels, since areas of tiny shapes are not well
                                    // defined

Bounds box_of(const Annotation& object) {
  const auto [x, y, width, height] = object.bbox;
  return {x, y, x + width, y + height};
}

double iou(const Bounds& a, const Bounds& b) {
  const double shared = a.in(b).area();
  return shared > 0 ? shared / (a.area() + b.area() - shared) : 0;
}

/// Checks the objects of one image and reports findings.
struct ImageObjects {
  const Dataset& data;
  const Image& image;
  Findings& findings;

  std::string file() const { return std::string(data.text(image.file_name)); }
  Bounds whole() const { return {0, 0, double(image.width), double(image.height)}; }

  void add_finding(const FindingKind& kind, const Annotation& object, std::string what = "") const {
    findings.add(
        kind,
        {.annotation = object.id, .image = image.id, .file = file(), .what = std::move(what)});
  }

  /// Describes on which side, and by how many pixels, bounds extend beyond the image; empty if they
  /// do not.
  std::string overhang(const Bounds& bounds) const {
    const auto [far, side] = std::max({std::pair{-bounds.x1, "left"sv},
                                       {-bounds.y1, "top"sv},
                                       {bounds.x2 - image.width, "right"sv},
                                       {bounds.y2 - image.height, "bottom"sv}});
    return far > kFar ? fmt::format("{:.4g} pixels beyond the {}", far, side) : "";
  }

  void check_box(const Annotation& object, bool has_area) const {
    const double(&box)[4] = object.bbox;
    const auto text = [&] {
      return fmt::format("box [{:g}, {:g}, {:g}, {:g}] in {} x {}", box[0], box[1], box[2], box[3],
                         image.width, image.height);
    };
    if (!has_area) return add_finding(kUnusable, object, text());
    if (const auto where = overhang(box_of(object)); !where.empty())
      add_finding(kOutside, object, text() + ": " + where);
    if (!has_pixels(object, image))
      add_finding(kThin, object, text());
    else if (std::max(box[2], box[3]) > kElongated * std::min(box[2], box[3]))
      add_finding(kLong, object, text());
    if (object.area <= 0)
      add_finding(kNoArea, object, fmt::format("area {:g}, {}", object.area, text()));
  }

  void check_shape(const Annotation& object, bool has_area) const {
    if (object.shape.kind == ShapeKind::polygons && object.crowd)
      add_finding(kCrowdPolygon, object);
    if (object.shape.kind == ShapeKind::mask && !object.crowd) add_finding(kMaskNoCrowd, object);
    const Segmentation shape = data.segmentation(object);
    const Bounds around = bounds_of(shape);
    if (const auto where = overhang(around); !where.empty())
      add_finding(kShapeOutside, object, where);
    const bool is_empty = area(mask_of(shape, static_cast<std::uint32_t>(image.height),
                                       static_cast<std::uint32_t>(image.width))) == 0;
    if (object.crowd) {  // shapes of crowds are used only in evaluation
      if (is_empty) add_finding(kCrowdEmpty, object);
      return;
    }
    const double size = shape_area(shape);
    if (is_empty)
      return add_finding(size > 0 && around.in(whole()).area() > 0 ? kSubpixel : kEmpty, object);
    if (has_area) compare(object, around.in(whole()));
    if (object.area > 0 && std::abs(object.area - size) > std::max(kAreaLeast, kAreaShare * size))
      add_finding(kArea, object, fmt::format("area {:.6g}, shape area {:.6g}", object.area, size));
  }

  /// Compares an object's box with the box around its shape.
  void compare(const Annotation& object, const Bounds& around) const {
    const Bounds box = box_of(object).in(whole());
    const double off = std::max({std::abs(box.x1 - around.x1), std::abs(box.y1 - around.y1),
                                 std::abs(box.x2 - around.x2), std::abs(box.y2 - around.y2)});
    if (off <= kOffset) return;
    const double shared = iou(box, around);
    add_finding(shared < kLeastIou ? kApart : kOff, object,
                fmt::format("{:.4g} pixels off, IoU {:.2f}", off, shared));
  }

  void find_twins(std::vector<const Annotation*> objects) const {
    const auto key = [](const Annotation* one) {
      return std::pair(one->category_id, std::to_array(one->bbox));
    };
    std::ranges::stable_sort(objects, {}, key);
    for (std::size_t i = 1; i < objects.size(); ++i)
      if (key(objects[i]) == key(objects[i - 1]) && !objects[i]->crowd && !objects[i - 1]->crowd)
        add_finding(kTwice, *objects[i], fmt::format("same as annotation {}", objects[i - 1]->id));
  }
};

}  // namespace

std::size_t check_objects(const Dataset& data, std::span<const std::int64_t> category_ids,
                          bool with_shapes, Findings& findings) {
  const bool has_shapes = std::ranges::any_of(
      data.annotations, [](const Annotation& one) { return one.shape.kind != ShapeKind::none; });
  std::vector<bool> counts;  // indexed by Dataset::category_index
  for (const Category& category : data.categories)
    counts.push_back(std::ranges::count(category_ids, category.id) > 0);
  std::atomic<std::size_t> images = 0;
  check_each(data.images.size(), findings, [&](std::size_t i, Findings& part) {
    const ImageObjects checks{data, data.images[i], part};
    bool usable = false;
    std::vector<const Annotation*> objects;
    for (const Annotation& object : data.objects(checks.image)) {
      if (!counts[static_cast<std::size_t>(data.category_index(object.category_id))]) continue;
      objects.push_back(&object);
      const bool has_area = clipped_box(object, checks.image).has_area();
      usable = usable || (has_pixels(object, checks.image) && !object.crowd && !object.ignored);
      if (object.id == 0) checks.add_finding(kIdZero, object);
      if (object.ignored) checks.add_finding(kIgnored, object);
      checks.check_box(object, has_area);
      if (!with_shapes) continue;
      if (object.shape.kind != ShapeKind::none)
        checks.check_shape(object, has_area);
      else if (has_shapes)
        checks.add_finding(kMissing, object);
    }
    checks.find_twins(std::move(objects));
    if (!usable) part.add(kEmptyImage, {.image = checks.image.id, .file = checks.file()});
    images += usable;
  });
  return images;
}

}  // namespace millrace::coco
