// Which images show nearly the same: copies, mirrored or saved again, and frames of one scene. A
// model that trains on one of them has seen the others.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "millrace/dataflow/detection/data_split.h"

namespace millrace::advice {

/// An image in 16 x 16 grey cells.
struct Sketch {
  static constexpr std::size_t kSide = 16;
  std::array<std::uint8_t, kSide * kSide> cells{};
  float aspect = 0;  // width / height; 0: there is no image

  Sketch mirrored() const;
};

/// Of each image; of a file that cannot be read one without cells. Decodes on all threads of the
/// caller's arena. Calls `on_image` after each, from any thread.
std::vector<Sketch> sketch_images(const DataSplit& split, const std::function<void()>& on_image);

/// How well the cells of two sketches agree: their correlation, -1 .. 1; 0 if one of them has
/// one tone or the proportions differ.
double likeness(const Sketch& a, const Sketch& b);
/// From here on two images are copies, whatever their names are.
inline constexpr double kCopy = 0.99;
/// From here on two images whose names follow each other are of one scene.
inline constexpr double kScene = 0.9;

/// Copies, mirrored or not: the same number for each of them, that of the first.
std::vector<std::size_t> copy_groups(std::span<const Sketch> sketches);

struct ImageGroups {
  std::vector<std::size_t> group;  // of each image, numbered from 0 in the order of first images
  std::size_t groups = 0;
  std::size_t copies = 0;  // images that are a copy of an earlier one
  std::size_t scenes = 0;  // images that belong to the scene of an earlier one, but are no copies
  /// The images of a video with more than half of all, which was cut into parts by the order of
  /// its frames; 0: there was none.
  std::size_t cut = 0;
};

/// Joins what must not be on both sides of a split: copies; neighbours among the names that differ
/// by a number alone ("clip3_0012.jpg", "clip3_0013.jpg"), where at least a quarter of such
/// neighbours show one scene, and these two do; files that an export tool made of one photo
/// ("photo_jpg.rf.0123abcd.jpg"). `names` are paths within the data set. Pure.
ImageGroups group_images(std::span<const std::string> names, std::span<const Sketch> sketches);

}  // namespace millrace::advice
