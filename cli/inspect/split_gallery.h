// A gallery of a split: typical images and extreme ones.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "millrace/tools/data/anchor_coverage.h"
#include "millrace/tools/data/object_statistics.h"
#include "millrace/tools/report/gallery.h"

namespace millrace::cli {

/// Returns annotated objects as shapes of the viewer: boxes and outlines in pixels of one image.
/// Crowds have a note.
std::vector<report::Shape> shapes_of(const Instances& objects, double tolerance);

/// An image and the reasons for its choice.
struct ChosenImage {
  std::size_t image = 0;  // position in SeenData::images
  std::vector<std::string> tags;
};

/// Chooses up to `most` images, ordered by position: those with the most objects, with the
/// smallest, largest and longest objects, with crowds, without objects, an image of each of the
/// rarest classes, those with most objects that no anchor reaches (`coverage` may be empty), and
/// evenly spaced others. Pure.
std::vector<ChosenImage> choose_images(const SeenData& data,
                                       const std::vector<ObjectCoverage>& coverage,
                                       std::size_t most);

/// Reads and decodes the images on all threads of the caller's arena. An image that cannot be read,
/// or has more than `max_pixels` (0 = unlimited), has no picture but a tag that reports this.
report::Gallery split_gallery(const Source<Sample>& source, const SeenData& data,
                              const std::vector<ObjectCoverage>& coverage,
                              const std::vector<ChosenImage>& chosen, std::int64_t max_pixels);

}  // namespace millrace::cli
