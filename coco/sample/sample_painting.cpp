#include <algorithm>
#include <cmath>
#include <numbers>
#include <opencv2/imgproc.hpp>

#include "millrace/coco/sample/sample_scene.h"
#include "millrace/coco/sample/sample_texture.h"

namespace millrace::coco {
namespace {

/// A distant lamp and ambient light.
struct Light {
  cv::Vec3f direction;  // unit vector from the surface to the lamp; z points to the viewer
  float ambient;
  float shadow;  // share of the light that a shadow removes
};

Light draw_light(Rng& rng) {
  const double angle = rng.uniform(0, 2 * std::numbers::pi), height = rng.uniform(0.5, 1.1);
  return {{static_cast<float>(std::cos(angle) * std::cos(height)),
           static_cast<float>(std::sin(angle) * std::cos(height)),
           static_cast<float>(std::sin(height))},
          static_cast<float>(rng.uniform(0.35, 0.6)),
          static_cast<float>(rng.uniform(0.25, 0.6))};
}

/// Lights a surface. `relief` is its height above the picture plane in pixels.
void shade(cv::Mat3f& colours, const cv::Mat1f& relief, const Light& light, float gloss) {
  const float flat = light.direction[2];  // light on a level surface, which keeps its colour
  for (int y = 0; y < colours.rows; ++y) {
    const float* here = relief[y];
    const float* above = relief[std::max(y - 1, 0)];
    const float* below = relief[std::min(y + 1, colours.rows - 1)];
    for (int x = 0; x < colours.cols; ++x) {
      const float dx = 0.5F * (here[std::min(x + 1, colours.cols - 1)] - here[std::max(x - 1, 0)]);
      const float dy = 0.5F * (below[x] - above[x]);
      const float upright = 1 / std::sqrt(1 + dx * dx + dy * dy);  // z of the normal
      const float facing = (flat - dx * light.direction[0] - dy * light.direction[1]) * upright;
      const float received = light.ambient + (1 - light.ambient) * std::max(facing, 0.0F) / flat;
      // Specular highlight: the half vector between lamp and viewer.
      float mirrored = std::max((facing + upright) / std::sqrt(2 + 2 * flat), 0.0F);
      for (int i = 0; i < 5; ++i) mirrored *= mirrored;  // to the power of 32
      const float shine = gloss * mirrored;
      colours(y, x) = colours(y, x) * std::min(received, 1.5F) + cv::Vec3f(shine, shine, shine);
    }
  }
}

/// Paints the ground of the whole picture, brighter towards the lamp.
cv::Mat3f paint_ground(cv::Size size, const Material& ground, const Light& light, Rng& rng) {
  const auto noise = draw_noise(size, 48, 5, rng);
  auto picture = lay_out(ground, noise, rng);
  shade(picture, noise * (5 * ground.rough), light, ground.gloss);
  const float slope = static_cast<float>(rng.uniform(0, 0.3));
  for (int y = 0; y < size.height; ++y)
    for (int x = 0; x < size.width; ++x) {
      const float towards = light.direction[0] * (2.0F * x / size.width - 1) +
                            light.direction[1] * (2.0F * y / size.height - 1);
      picture(y, x) *= 1 + slope * towards;
    }
  return picture;
}

/// Casts the soft shadow of a body of `height` pixels on the picture painted so far.
void cast_shadow(cv::Mat3f& picture, const Stamp& stamp, const Light& light, double height) {
  const int soft = std::max(1, cvRound(height));
  cv::Mat1b shadow;
  cv::copyMakeBorder(stamp.coverage, shadow, 2 * soft, 2 * soft, 2 * soft, 2 * soft,
                     cv::BORDER_CONSTANT, 0);
  cv::blur(shadow, shadow, {2 * soft + 1, 2 * soft + 1});
  cv::blur(shadow, shadow, {soft | 1, soft | 1});
  const double reach = 1.2 * height / light.direction[2];
  const cv::Point origin = stamp.origin - cv::Point(2 * soft + cvRound(reach * light.direction[0]),
                                                    2 * soft + cvRound(reach * light.direction[1]));
  const cv::Rect inside = cv::Rect(origin, shadow.size()) & cv::Rect({}, picture.size());
  for (int y = inside.y; y < inside.br().y; ++y)
    for (int x = inside.x; x < inside.br().x; ++x)
      picture(y, x) *= 1 - light.shadow * shadow(y - origin.y, x - origin.x) / 255.0F;
}

/// Returns the height of a body over its outline: level, but rounded within `bevel` pixels of the
/// edge.
cv::Mat1f rounded_relief(const cv::Mat1b& coverage, float bevel) {
  cv::Mat1f depth;
  cv::distanceTransform(coverage >= 128, depth, cv::DIST_L2, cv::DIST_MASK_5);
  for (auto& d : depth) {
    const float t = 1 - std::min(d / bevel, 1.0F);
    d = 0.8F * bevel * std::sqrt(1 - t * t);
  }
  cv::GaussianBlur(depth, depth, {5, 5}, 1.0);  // hides facets from the pixel grid
  return depth;
}

void paint_body(cv::Mat3f& picture, const Stamp& stamp, const Material& material,
                const Light& light, float bevel, Rng& rng) {
  const cv::Rect inside = stamp.box() & cv::Rect({}, picture.size());
  if (inside.empty()) return;
  const auto noise = draw_noise(stamp.coverage.size(), std::max(6.0, material.period), 4, rng);
  auto colours = lay_out(material, noise, rng);
  const cv::Mat1f relief = rounded_relief(stamp.coverage, bevel) + noise * (4 * material.rough);
  shade(colours, relief, light, material.gloss);
  for (int y = inside.y; y < inside.br().y; ++y)
    for (int x = inside.x; x < inside.br().x; ++x) {
      const cv::Point at = cv::Point(x, y) - stamp.origin;
      const float share = stamp.coverage(at) / 255.0F;
      if (share > 0) picture(y, x) += (colours(at) - picture(y, x)) * share;
    }
}

Material wood_of_a_stick(Rng& rng) {
  const float tone = static_cast<float>(rng.uniform(0.15, 0.6));
  return {.pattern = Pattern::wood,
          .first = Colour(0.45F, 0.65F, 0.9F) * tone,
          .second = Colour(0.3F, 0.5F, 0.7F) * tone,
          .angle = rng.uniform(0, 3),
          .period = 12,
          .rough = 0.3,
          .gloss = 0};
}

void paint_thing(cv::Mat3f& picture, const Thing& thing, const Material& ground, const Light& light,
                 Rng& rng) {
  const double side = std::sqrt(thing.stamps[0].area);
  const auto material = thing.kind ? draw_surface(ground, side, rng) : wood_of_a_stick(rng);
  const double height = thing.kind ? std::clamp(0.08 * side * rng.uniform(0.7, 1.3), 1.5, 7.0) : 3;
  const float bevel = static_cast<float>(std::max(2.0, side * rng.uniform(0.06, 0.25)));
  for (const auto& stamp : thing.stamps) {
    cast_shadow(picture, stamp, light, height);
    auto own = material;
    if (thing.crowd) {  // members of a crowd differ slightly
      const auto tone = static_cast<float>(rng.uniform(0.8, 1.2));
      own.first *= tone;
      own.second *= tone;
      own.angle += rng.uniform(0, 3);
    }
    paint_body(picture, stamp, own, light, bevel, rng);
  }
}

/// Applies lens and film effects: vignette, colour cast, slight blur and grain.
cv::Mat3b develop(cv::Mat3f& picture, Rng& rng) {
  if (rng.chance(0.6)) cv::GaussianBlur(picture, picture, {3, 3}, rng.uniform(0.4, 0.8));
  const auto vignette = static_cast<float>(rng.uniform(0, 0.35));
  const auto grain = static_cast<float>(rng.uniform(1, 5));  // of 255
  const auto warmth = static_cast<float>(rng.normal() * 0.04);
  const auto exposure = static_cast<float>(rng.uniform(0.88, 1.15));
  const cv::Vec3f cast = cv::Vec3f(1 - warmth, 1, 1 + warmth) * (255 * exposure);
  cv::Mat3b developed(picture.size());
  for (int y = 0; y < picture.rows; ++y)
    for (int x = 0; x < picture.cols; ++x) {
      const float rx = 2.0F * x / picture.cols - 1, ry = 2.0F * y / picture.rows - 1;
      const auto colour = picture(y, x).mul(cast) * (1 - vignette * 0.5F * (rx * rx + ry * ry));
      const auto bits = rng();
      const auto noise = [&](int i) {  // four numbers in -1..1
        return static_cast<float>((bits >> (16 * i)) & 0xFFFF) * 0x1.0p-15F - 1;
      };
      for (int c = 0; c < 3; ++c) {  // most of the grain affects the brightness, some each channel
        const float value = colour[c] + grain * (1.5F * noise(3) + 0.8F * noise(c));
        developed(y, x)[c] = cv::saturate_cast<std::uint8_t>(value);
      }
    }
  return developed;
}

}  // namespace

cv::Mat3b paint(const Scene& scene, Rng& rng) {
  const auto light = draw_light(rng);
  const auto ground = draw_ground(rng);
  auto picture = paint_ground(scene.size, ground, light, rng);
  for (const auto& thing : scene.things) paint_thing(picture, thing, ground, light, rng);
  return develop(picture, rng);
}

}  // namespace millrace::coco
