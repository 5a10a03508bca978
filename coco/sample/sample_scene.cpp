#include "millrace/coco/sample/sample_scene.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

// Several random numbers in one expression are drawn in braces, which fix the order of evaluation.

namespace millrace::coco {
namespace {

constexpr double kEmpty = 0.03, kCrowd = 0.05, kStick = 0.25;  // probabilities per picture
// Minimum visible share of an object, including its part outside the picture.
constexpr double kLeastVisible = 0.34;
constexpr int kLeastPixels = 60;

cv::Size draw_size(Rng& rng) {
  static const cv::Size kSizes[] = {{256, 192}, {256, 192}, {192, 256}, {224, 224}, {256, 144},
                                    {144, 256}, {256, 170}, {170, 256}, {240, 180}, {200, 250}};
  return kSizes[rng.below(std::size(kSizes))];
}

/// Returns an area in square pixels. Small, medium and large are COCO's: under 32 x 32, under 96 x
/// 96, the rest.
double draw_area(cv::Size picture, Rng& rng) {
  const double which = rng.uniform();
  const double side = which < 0.22   ? rng.uniform(17, 31)
                      : which < 0.82 ? rng.uniform(33, 82)
                                     : rng.uniform(98, 125);
  const double most = 0.62 * std::min(picture.width, picture.height);
  return std::pow(std::min(side, most), 2);
}

/// Writes a thing's stamps into an owner map.
void stamp_owner(cv::Mat1b& owner, const Thing& thing, std::uint8_t id) {
  for (const auto& stamp : thing.stamps) {
    const cv::Rect inside = stamp.box() & cv::Rect({}, owner.size());
    if (inside.empty()) continue;
    owner(inside).setTo(id, stamp.coverage(inside - stamp.origin) >= 128);
  }
}

/// Returns the number of pixels of each owner.
std::array<int, 256> count_owners(const cv::Mat1b& owner) {
  std::array<int, 256> counts{};
  for (const auto id : owner) ++counts[id];
  return counts;
}

int full_area(const Thing& thing) {
  int total = 0;
  for (const auto& stamp : thing.stamps) total += stamp.area;
  return total;
}

/// Adds the thing in front. Returns false and adds nothing if it would hide more than `most_hidden`
/// of the visible part of another thing, or leave too little visible of any thing, including
/// itself.
bool try_add(Scene& scene, const Thing& thing, double most_hidden) {
  auto owner = scene.owner.clone();
  stamp_owner(owner, thing, static_cast<std::uint8_t>(scene.things.size() + 1));
  const auto before = count_owners(scene.owner), after = count_owners(owner);
  const auto enough = [&](const Thing& t, std::size_t id) {
    return after[id] >= kLeastPixels && after[id] >= kLeastVisible * full_area(t);
  };
  for (std::size_t i = 0; i < scene.things.size(); ++i) {
    const bool spared = after[i + 1] >= (1 - most_hidden) * before[i + 1];
    if (scene.things[i].kind && !(spared && enough(scene.things[i], i + 1))) return false;
  }
  if (!enough(thing, scene.things.size() + 1)) return false;
  scene.owner = owner;
  scene.things.push_back(thing);
  return true;
}

/// Returns a random position in the picture; with `cut`, the patch may be cut off by the border.
cv::Point draw_origin(cv::Size picture, cv::Size patch, bool cut, Rng& rng) {
  const auto along = [&](int space, int length) {
    if (cut) return static_cast<int>(rng.between(0, space - 1)) - length / 2;
    return static_cast<int>(rng.between(std::min(0, space - length), std::max(0, space - length)));
  };
  const int x = along(picture.width, patch.width);
  return {x, along(picture.height, patch.height)};
}

void add_object(Scene& scene, Rng& rng) {
  constexpr int tries = 16;
  Thing thing;
  thing.kind = rng.below(kinds().size());
  thing.stamps = {rasterize(draw_outline(kinds()[*thing.kind], draw_area(scene.size, rng), rng))};
  const bool cut = rng.chance(0.18);
  const double most_hidden = rng.chance(0.35) ? 0.6 : 0.08;
  for (int i = 0; i < tries; ++i) {
    thing.stamps[0].origin = draw_origin(scene.size, thing.stamps[0].coverage.size(), cut, rng);
    if (try_add(scene, thing, most_hidden)) return;
  }
}

/// Adds a dozen or more small objects of one kind in rows.
void add_crowd(Scene& scene, Rng& rng) {
  Thing crowd;
  crowd.kind = rng.below(kinds().size());
  const auto& kind = kinds()[*crowd.kind];
  crowd.crowd = true;
  const double side = rng.uniform(11, 17);
  const double pitch = side * kind.pitch;
  const auto columns = rng.between(4, 8), rows = rng.between(3, 5);
  const cv::Point2d corner{
      rng.uniform(0, std::max(1.0, scene.size.width - (columns - 1.0) * pitch)),
      rng.uniform(0, std::max(1.0, scene.size.height - (rows - 1.0) * pitch))};
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < columns; ++column) {
      auto outline = draw_outline(kind, std::pow(side * rng.uniform(0.85, 1.15), 2), rng);
      const cv::Point2d jitter{rng.normal() * pitch * 0.12, rng.normal() * pitch * 0.12};
      const cv::Point2d centre =
          corner + cv::Point2d(column + 0.5 * (row % 2), row) * pitch + jitter;
      for (auto& contour : outline)
        for (auto& p : contour) p += centre;
      crowd.stamps.push_back(rasterize(outline));
    }
  try_add(scene, crowd, 0);
}

/// Adds a stick over one of the objects, often splitting it.
void add_stick(Scene& scene, Rng& rng) {
  if (scene.things.empty()) return;
  const auto& target = scene.things[rng.below(scene.things.size())];
  const auto box = target.stamps[rng.below(target.stamps.size())].box();
  const double side = std::sqrt(box.area());
  const cv::Point2d centre{box.x + box.width * rng.uniform(0.4, 0.6),
                           box.y + box.height * rng.uniform(0.4, 0.6)};
  const double width = std::clamp(side * rng.uniform(0.10, 0.18), 4.0, 14.0);
  const double length = side * rng.uniform(1.3, 2.2) + 20;
  Thing stick;
  stick.stamps = {
      rasterize(draw_stick(centre, rng.uniform(0, std::numbers::pi), length, width, rng))};
  try_add(scene, stick, 0.5);
}

}  // namespace

Scene plan_scene(Rng& rng) {
  Scene scene;
  scene.size = draw_size(rng);
  scene.owner = cv::Mat1b(scene.size, std::uint8_t{0});
  if (rng.chance(kEmpty)) return scene;
  const bool crowd = rng.chance(kCrowd);
  if (crowd) add_crowd(scene, rng);
  const auto objects = crowd ? rng.between(0, 3) : rng.between(1, 6);
  for (std::int64_t i = 0; i < objects; ++i) add_object(scene, rng);
  if (rng.chance(kStick)) add_stick(scene, rng);
  return scene;
}

}  // namespace millrace::coco
