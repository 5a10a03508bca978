// The images that a training is scored on if the data have no split: a share of them that holds
// every class, and no image beside its own copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace millrace::advice {

/// One image: those of one group stay together (see groups_of_images).
struct SplitImage {
  std::size_t group = 0;
  std::vector<std::size_t> classes;  // of its objects, each once
};

struct SplitChoice {
  std::vector<bool> validates;  // of each image
  // Classes with two groups or more, all of them on one side
  std::vector<std::size_t> unvalidated, untrained;

  std::size_t validation_images() const;
};

/// The share of the images that is wanted for validation: a fifth, at most 5,000, which is what
/// COCO has.
double validation_share(std::size_t images);
/// The most of it that is taken for classes that would have no object there otherwise.
inline constexpr double kMostValidation = 1. / 3;

/// Chooses whole groups: about `share` of the images and of the images of each class; a class with
/// two groups or more on both sides, unless that takes more than kMostValidation of the images or
/// classes contradict each other; a class with one group to train on. The same for the same
/// arguments. One group alone cannot be divided: no image validates then.
SplitChoice choose_split(std::span<const SplitImage> images, std::size_t classes, double share,
                         std::uint64_t seed);

}  // namespace millrace::advice
