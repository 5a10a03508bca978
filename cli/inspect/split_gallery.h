// A gallery of a split: images that are like most, and those at its ends.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "millrace/tools/data/anchor_coverage.h"
#include "millrace/tools/data/object_statistics.h"
#include "millrace/tools/report/gallery.h"

namespace millrace::cli {

/// Annotated objects as shapes of the viewer: boxes and outlines in pixels of one image; crowds are
/// noted as such.
std::vector<report::Shape> shapes_of(const Instances& objects, double tolerance);

/// An image, and what it stands for.
struct ChosenImage {
  std::size_t image = 0;  // position in SeenData::images
  std::vector<std::string> tags;
};

/// At most `most` images, by position: evenly some of all, those with the most objects, the
/// smallest, largest and longest ones, crowds, without an object, an image of each of the rarest
/// classes, and those where anchors reach fewest objects (`coverage` may be empty). Pure.
std::vector<ChosenImage> choose_images(const SeenData& data,
                                       const std::vector<ObjectCoverage>& coverage,
                                       std::size_t most);

/// Reads and decodes the images, by all threads of the caller's arena. One that cannot be read, or
/// has more than `max_pixels` (0 = unlimited), has no picture and a tag that says so.
report::Gallery split_gallery(const Source<Sample>& source, const SeenData& data,
                              const std::vector<ObjectCoverage>& coverage,
                              const std::vector<ChosenImage>& chosen, std::int64_t max_pixels);

}  // namespace millrace::cli
