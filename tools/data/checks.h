// The checks of `trainer doctor`, which add problems to `findings`. Checks of files, records and
// objects use all threads of the caller's arena.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "millrace/base/digest.h"
#include "millrace/coco/data/check_records.h"
#include "millrace/coco/data/findings.h"
#include "millrace/dataflow/detection/data_split.h"
#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/engine/source.h"

namespace millrace {
namespace coco {

/// Checks boxes, areas and, if `with_shapes`, shapes of the objects of these categories. Returns
/// the number of images with a usable object, which is not a crowd and not ignored and
/// `has_pixels`.
std::size_t check_objects(const Dataset& data, std::span<const std::int64_t> category_ids,
                          bool with_shapes, Findings& findings);

}  // namespace coco

/// Bounds between size kinds, in pixels: the square root of the box area after the resize.
inline constexpr std::array<double, 3> kSizeBounds = {16, 32, 96};

/// Number of objects of each size kind, without crowds and boxes without area.
using SizeCounts = std::array<std::uint64_t, kSizeBounds.size() + 1>;

/// Counts objects by their size after a resize to these sides; see shortest_edge_size.
SizeCounts check_sizes(const DataSplit& split, std::int64_t short_side, std::int64_t max_side,
                       coco::Findings& findings);

enum class ImageCheck {
  decode,  // decode every pixel, as training does
  heads,   // check the header of each JPEG; decode other files
};

/// Size and digest of the first bytes, which distinguish an image file from most others.
struct FileMark {
  std::uint64_t bytes = 0;  // 0 = unreadable or empty
  WideDigest head;
};

/// Checks that each image's file exists, is readable and has the annotated size. Calls `on_image`
/// after each one, on any thread. Returns a mark per image.
std::vector<FileMark> check_images(const DataSplit& split, ImageCheck how, coco::Findings& findings,
                                   const std::function<void()>& on_image,
                                   const ImageOptions& options = {});

/// Reports files that several images share, and image files in the split's folders that no image
/// names.
void check_file_names(const DataSplit& split, coco::Findings& findings);

/// Reads each sample of a source and, if `decode`, decodes its image. Calls `on_sample` after each
/// one, on any thread.
void check_samples(const Source<Sample>& source, bool decode, coco::Findings& findings,
                   const std::function<void()>& on_sample, const ImageOptions& options = {});

/// A split as training or evaluation reads it.
struct NamedSplit {
  std::string name;
  DataSplit data;                    // a missing class has the id kNoCategory
  std::vector<FileMark> marks = {};  // marks of the image files; empty = not checked
};

/// Reports files with the same bytes, in one split and across splits. Reads the files with equal
/// marks.
void check_copies(std::span<const NamedSplit> splits, coco::Findings& findings);

/// Counts of one class in one split, without crowds.
struct ClassCount {
  std::uint64_t objects = 0, images = 0;
};

/// Counts by class (rows) and split (columns).
using ClassTable = std::vector<std::vector<ClassCount>>;
ClassTable count_classes(std::span<const NamedSplit> splits);

/// Checks the categories of one split: ids, names, and that each class has a category.
void check_categories(const NamedSplit& split, coco::Findings& findings);

/// Compares the classes of the first split, the training split, with those of the other splits.
/// `table` has their counts.
void check_classes(std::span<const NamedSplit> splits, const ClassTable& table,
                   coco::Findings& findings);

/// Options of `check_split`.
struct SplitChecks {
  bool shapes = true;
  std::optional<ImageCheck> images = ImageCheck::decode;  // nullopt = do not check files
  ImageOptions image_options = {};
};

/// Checks the categories, objects and files of a split, and sets its marks. Calls `on_image` like
/// check_images. Returns the number of images with a usable object.
std::size_t check_split(NamedSplit& split, const SplitChecks& checks, coco::Findings& findings,
                        const std::function<void()>& on_image);

/// Reports class names that may be a misspelling of another one ("Dog" or "dgo" beside "dog"):
/// names that differ only in case, spaces or punctuation, and names that differ in one letter if
/// the class is rare, with up to a twentieth of the other's objects. `objects` has the number of
/// objects of each class. `check_classes` calls this for the training split.
void check_class_names(std::span<const std::string> names, std::span<const std::uint64_t> objects,
                       coco::Findings& findings);

}  // namespace millrace
