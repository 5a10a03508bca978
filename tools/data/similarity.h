// Finds images with nearly the same content: copies, mirrored or saved again, and frames of one
// scene. A model trained on one of them has in effect seen the others.
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

/// An image reduced to 16 x 16 grey cells.
struct Thumbprint {
  static constexpr std::size_t kSide = 16;
  std::array<std::uint8_t, kSide * kSide> cells{};
  float aspect = 0;  // width / height; 0 = no image

  Thumbprint mirrored() const;
};

/// Returns the thumbprint of each image, with aspect 0 for unreadable files. Decodes on all threads
/// of the caller's arena. Calls `on_image` after each one, on any thread.
std::vector<Thumbprint> compute_thumbprints(const DataSplit& split,
                                            const std::function<void()>& on_image);

/// Returns the correlation of two thumbprints' cells, -1 .. 1; 0 if one of them is nearly uniform
/// or the aspect ratios differ.
double similarity(const Thumbprint& a, const Thumbprint& b);
/// Minimum similarity of copies, whatever their names.
inline constexpr double kCopy = 0.99;
/// Minimum similarity of images of one scene, for images with consecutive names.
inline constexpr double kScene = 0.9;

/// Returns the group of each image: copies, mirrored or not, have the index of the first one.
std::vector<std::size_t> copy_groups(std::span<const Thumbprint> thumbprints);

struct ImageGroups {
  std::vector<std::size_t> group;  // of each image, numbered from 0 in the order of first images
  std::size_t groups = 0;
  std::size_t copies = 0;  // images that are copies of an earlier one
  std::size_t scenes = 0;  // images of an earlier image's scene, without copies
  /// Number of images of the video that made up more than half of all images and was cut into parts
  /// in frame order; 0 = none.
  std::size_t cut = 0;
};

/// Groups images that must be on the same side of a split. These are copies; consecutive images
/// among names that differ only by a number ("clip3_0012.jpg", "clip3_0013.jpg"), if they show one
/// scene and at least a quarter of such pairs do; and files that an export tool made from one photo
/// ("photo_jpg.rf.0123abcd.jpg"). `names` are paths within the data set. This function is pure.
ImageGroups group_images(std::span<const std::string> names,
                         std::span<const Thumbprint> thumbprints);

}  // namespace millrace::advice
