// The checks of `trainer doctor`; each adds to `findings` what is wrong. Checks of files, records
// and objects run on all threads of the caller's arena.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "millrace/base/digest.h"
#include "millrace/coco/data/check_records.h"
#include "millrace/coco/data/findings.h"
#include "millrace/dataflow/detection/data_split.h"
#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/engine/source.h"

namespace millrace {
namespace coco {

/// Boxes, areas and, `with_shapes`, shapes of these categories' objects. Returns how many images
/// have an object to learn: one that is no crowd, is not ignored and `has_pixels`.
std::size_t check_objects(const Dataset& data, std::span<const std::int64_t> category_ids,
                          bool with_shapes, Findings& findings);

}  // namespace coco

/// Bounds between the kinds of size, in pixels: the root of a box's area after the resize.
inline constexpr std::array<double, 3> kSizeBounds = {16, 32, 96};

/// Objects below each bound, and from the last on; crowds and boxes without area do not count.
using SizeCounts = std::array<std::uint64_t, kSizeBounds.size() + 1>;

/// How large objects are after a resize to these sides; see shortest_edge_size.
SizeCounts check_sizes(const DataSplit& split, std::int64_t short_side, std::int64_t max_side,
                       coco::Findings& findings);

enum class ImageCheck {
  decode,  // every pixel, as training would
  heads,   // the beginning of each JPEG; other files as a whole
};

/// Distinguishes an image file from most others: its length and the digest of its first bytes.
struct FileMark {
  std::uint64_t bytes = 0;  // 0: it could not be read, or is empty
  WideDigest head;
};

/// Whether each image's file is there, can be read and has the annotated size.
/// Calls `on_image` after each, from any thread. Returns a mark per image.
std::vector<FileMark> check_images(const DataSplit& split, ImageCheck how, coco::Findings& findings,
                                   const std::function<void()>& on_image,
                                   const ImageOptions& options = {});

/// Files that two images share, and image files beside the split's own that no image names.
void check_file_names(const DataSplit& split, coco::Findings& findings);

/// Reads each sample of a source and may decode its image; calls `on_sample` after it, in any
/// thread.
void check_samples(const Source<Sample>& source, bool decode, coco::Findings& findings,
                   const std::function<void()>& on_sample, const ImageOptions& options = {});

/// A split as training or evaluation would see it.
struct NamedSplit {
  std::string name;
  DataSplit data;                    // kNoCategory is the id of a class that is not there
  std::vector<FileMark> marks = {};  // of its files; empty: these were not checked
};

/// Files with the same bytes, in one split and across splits. Reads those with equal marks.
void check_copies(std::span<const NamedSplit> splits, coco::Findings& findings);

/// Counts of one class in one split; crowds do not count.
struct ClassCount {
  std::uint64_t objects = 0, images = 0;
};

/// Row k: class k in each split.
using ClassTable = std::vector<std::vector<ClassCount>>;
ClassTable count_classes(std::span<const NamedSplit> splits);

/// The categories of one split: ids, names, and whether each class is among them.
void check_categories(const NamedSplit& split, coco::Findings& findings);

/// The classes of the first split, which is trained on, beside the others'. `table` counts them.
void check_classes(std::span<const NamedSplit> splits, const ClassTable& table,
                   coco::Findings& findings);

/// The input of `check_split`.
struct SplitChecks {
  bool shapes = true;
  std::optional<ImageCheck> images = ImageCheck::decode;  // nullopt: no file
  ImageOptions image_options = {};
};

/// The categories, objects and files of a split, whose marks it sets. Calls `on_image` as
/// check_images. Returns how many images have an object to learn.
std::size_t check_split(NamedSplit& split, const SplitChecks& checks, coco::Findings& findings,
                        const std::function<void()>& on_image);

/// Classes that may be another's by a slip of the pen ("Dog" or "dgo" beside "dog"), by how many
/// objects each has: names that differ in case, spaces or signs alone; in one letter, if one has
/// a twentieth of the other's objects. `check_classes` calls it for the objects to train on.
void check_class_names(std::span<const std::string> names, std::span<const std::uint64_t> objects,
                       coco::Findings& findings);

}  // namespace millrace
