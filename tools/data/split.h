// Chooses validation images for data without a split: a fraction that includes every class, without
// copies of training images.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace millrace::advice {

/// An image. Images of one group stay together (see group_images).
struct SplitImage {
  std::size_t group = 0;
  std::vector<std::size_t> classes;  // classes of its objects, without duplicates
};

/// Returns the fraction of validation images: a fifth, but up to 5,000 images, as in COCO.
double validation_share(std::size_t images);
/// Maximum fraction of validation images, used for classes that would have no validation object
/// otherwise.
inline constexpr double kMostValidation = 1. / 3;

/// Chooses whole groups for validation: about `share` of the images and of each class's images. A
/// class with two or more groups has some on both sides, unless this needs more than
/// kMostValidation of the images or classes conflict; a class with a single group is used for
/// training. The same arguments give the same result. Returns true for each validation image; a
/// single group cannot be divided, so all are false then.
std::vector<bool> choose_split(std::span<const SplitImage> images, std::size_t classes,
                               double share, std::uint64_t seed);

}  // namespace millrace::advice
