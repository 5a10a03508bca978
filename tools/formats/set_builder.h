// Collects the splits of a data set while a reader processes its labels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/coco/data/annotations.h"
#include "millrace/coco/data/records.h"
#include "millrace/tools/formats/files/image_finder.h"
#include "millrace/tools/formats/files/image_size.h"
#include "millrace/tools/formats/format.h"

namespace millrace::formats {

/// The file and line of a label, for findings; line 0 = the whole file.
struct LabelPlace {
  std::string_view file;
  int line = 0;
};

/// An object described by a label.
struct ReadObject {
  int category = 0;                       // index among the builder's categories
  double x1 = 0, y1 = 0, x2 = 0, y2 = 0;  // in pixels; ignored if `box_of_shape`
  coco::Segmentation shape = {};
  bool box_of_shape = false;  // true if the box is the bounding box of the shape
  bool crowd = false, ignored = false;
};

/// An image of a split; `split` is its index.
struct OpenImage {
  std::size_t split = 0;
  std::int64_t id = 0;
  ImageSize size;
};

/// Builds the splits of a data set. Not thread-safe. Ids of images and annotations count from 1
/// over all splits, in the order of addition; ids of categories count from 1.
class SetBuilder {
 public:
  SetBuilder(const Listing& folder, coco::Findings& findings)
      : folder_(folder), findings_(findings) {}

  /// Adds a finding at a place such as "labels/a.txt:3"; `line` 0 = the whole file.
  void report(const coco::FindingKind& kind, std::string_view file, int line = 0,
              std::string what = {});

  /// Returns the index of a category; adds it if it is new.
  int category(std::string_view name);
  std::size_t category_count() const { return categories_.size(); }
  /// Orders categories by name instead of by first use.
  void sort_categories() { sorts_categories_ = true; }

  /// Returns the index of a split; adds it if it is new. File names are relative to `images`, or to
  /// a parent of it if some files are elsewhere.
  std::size_t split(std::string_view name, const RelativePath& images);

  /// Marks an image that has a label, even if the image is left out.
  void mark(const RelativePath& image) { marked_.insert(image); }

  /// Marks an image and adds it to a split, once. `annotated` is the size in its label; `label` is
  /// used in findings. Returns nullopt and adds a finding if the file's size cannot be read.
  std::optional<OpenImage> add_image(std::size_t split, const RelativePath& file,
                                     std::optional<ImageSize> annotated, LabelPlace label);

  /// Adds an object, and findings for its problems. Leaves out objects that COCO cannot represent.
  void add(const OpenImage& image, ReadObject object, LabelPlace label);

  /// Returns the splits; call it once. Throws Error if no image was added.
  std::vector<Split> finish() &&;
  /// Returns the splits as above; first adds a finding for each unmarked image in the folder of a
  /// marked one.
  std::vector<Split> finish(const ImageFinder& images) &&;

 private:
  struct Part {
    std::string name;
    std::filesystem::path images;
    coco::Records records = {};
    std::vector<std::filesystem::path> files = {};  // file of each of records.images
    std::map<RelativePath, std::optional<OpenImage>> seen = {};
  };

  void name_files(Part& part) const;

  const Listing& folder_;
  coco::Findings& findings_;
  std::vector<std::string> categories_;
  std::map<std::string, int, std::less<>> category_positions_;
  bool sorts_categories_ = false;
  std::vector<Part> parts_;
  std::set<RelativePath> marked_;
  std::int64_t last_image_ = 0, last_annotation_ = 0;
};

}  // namespace millrace::formats
