#include "millrace/cli/check_gpu/made_photos.h"

#include <fmt/format.h>
#include <tbb/parallel_for.h>
#include <turbojpeg.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/base/disk/part_folder.h"
#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/random.h"
#include "millrace/cli/command.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kWidth = 640, kHeight = 480, kObjects = 8;
constexpr int kQuality = 90;
constexpr double kNoise = 36;  // of a pixel, peak to peak: what makes a photo heavy

struct Rectangle {
  int x, y, width, height;
  std::uint8_t colour[3];
};

std::vector<Rectangle> drawn_objects(Rng& rng) {
  std::vector<Rectangle> all;
  for (int i = 0; i < kObjects; ++i) {
    Rectangle one{static_cast<int>(rng.between(0, kWidth - 120)),
                  static_cast<int>(rng.between(0, kHeight - 120)),
                  static_cast<int>(rng.between(20, 120)),
                  static_cast<int>(rng.between(20, 120)),
                  {}};
    for (auto& part : one.colour) part = static_cast<std::uint8_t>(rng.below(256));
    all.push_back(one);
  }
  return all;
}

std::vector<std::uint8_t> painted(const std::vector<Rectangle>& objects, Rng& rng) {
  std::vector<std::uint8_t> pixels(std::size_t{kWidth} * kHeight * 3);
  const double fx = rng.uniform(0.005, 0.03), fy = rng.uniform(0.005, 0.03);
  auto* out = pixels.data();
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x) {
      const double ground = 128 + 60 * std::sin(fx * x) * std::cos(fy * y);
      const Rectangle* over = nullptr;
      for (const auto& one : objects)
        if (x >= one.x && x < one.x + one.width && y >= one.y && y < one.y + one.height)
          over = &one;
      const auto bits = rng();
      for (int c = 0; c < 3; ++c) {
        const double noise =
            (static_cast<double>(bits >> (16 * c) & 0xffff) / 65536 - 0.5) * kNoise;
        *out++ = static_cast<std::uint8_t>(
            std::clamp((over ? over->colour[c] : ground) + noise, 0., 255.));
      }
    }
  return pixels;
}

std::string jpeg_of(const std::vector<std::uint8_t>& pixels) {
  const std::unique_ptr<void, int (*)(void*)> compressor(tjInitCompress(), tjDestroy);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  const int problem = tjCompress2(compressor.get(), pixels.data(), kWidth, 0, kHeight, TJPF_RGB,
                                  &bytes, &size, TJSAMP_420, kQuality, 0);
  const std::unique_ptr<unsigned char, void (*)(unsigned char*)> owner(bytes, tjFree);
  if (problem != 0) throw Error(std::string("a picture cannot be made: ") + tjGetErrorStr());
  return {reinterpret_cast<const char*>(bytes), size};
}

Json annotation(const Rectangle& one, std::int64_t id, std::int64_t image) {
  const int right = one.x + one.width, bottom = one.y + one.height;
  return {{"id", id},
          {"image_id", image},
          {"category_id", id % 3 + 1},
          {"iscrowd", 0},
          {"area", one.width * one.height},
          {"bbox", {one.x, one.y, one.width, one.height}},
          {"segmentation", {{one.x, one.y, right, one.y, right, bottom, one.x, bottom}}}};
}

void write_split(const fs::path& root, const std::string& name, std::int64_t first,
                 std::int64_t count) {
  make_writable_folder(root / name);
  std::vector<std::vector<Rectangle>> objects(static_cast<std::size_t>(count));
  tbb::parallel_for(std::int64_t{0}, count, [&](std::int64_t i) {
    Rng rng{static_cast<std::uint64_t>(first + i)};
    auto& own = objects[static_cast<std::size_t>(i)];
    own = drawn_objects(rng);
    const auto bytes = jpeg_of(painted(own, rng));
    const std::string_view part = bytes;
    replace_file(root / name / fmt::format("{:012}.jpg", first + i), {&part, 1});
  });
  Json images = Json::array(), annotations = Json::array(), categories = Json::array();
  for (int id = 1; id <= 3; ++id)
    categories.push_back({{"id", id}, {"name", fmt::format("kind {}", id)}});
  for (std::int64_t i = 0; i < count; ++i) {
    const auto id = first + i;
    images.push_back({{"id", id},
                      {"file_name", fmt::format("{:012}.jpg", id)},
                      {"width", kWidth},
                      {"height", kHeight}});
    for (const auto& one : objects[static_cast<std::size_t>(i)])
      annotations.push_back(annotation(one, std::ssize(annotations) + 1, id));
  }
  const auto text =
      Json{{"images", images}, {"annotations", annotations}, {"categories", categories}}.dump();
  const std::string_view part = text;
  replace_file(root / "annotations" / ("instances_" + name + ".json"), {&part, 1});
}

}  // namespace

void make_photos(const fs::path& folder, std::int64_t count) {
  PartFolder part(folder, PartFolder::Existing::refuse);
  make_writable_folder(part.path() / "annotations");
  write_split(part.path(), "train2017", 1, count);
  write_split(part.path(), "val2017", count + 1, std::max<std::int64_t>(1, count / 10));
  part.publish();
}

}  // namespace millrace::cli
