// Gathers the splits of a data set while a reader goes through its labels.
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

/// The place of a label, for findings.
struct LabelPlace {
  std::string_view file;
  int line = 0;
};

/// An object as a label describes it.
struct ReadObject {
  int category = 0;                       // position among the builder's categories
  double x1 = 0, y1 = 0, x2 = 0, y2 = 0;  // pixels; not read if `box_of_shape`
  coco::Segmentation shape = {};
  bool box_of_shape = false;  // the box is the one around the shape
  bool crowd = false, ignored = false;
};

/// One image of a split. `split` and `image` are positions.
struct OpenImage {
  std::size_t split = 0;
  std::int64_t id = 0;
  ImageSize size;
};

/// Not for several threads. Ids of images and annotations count from 1 over all splits, in the
/// order in which they are added; ids of categories from 1.
class SetBuilder {
 public:
  SetBuilder(const Listing& folder, coco::Findings& findings)
      : folder_(folder), findings_(findings) {}

  coco::Findings& findings() { return findings_; }

  /// The position of a category, which is added if it is new.
  int category(std::string_view name);
  std::size_t category_count() const { return categories_.size(); }
  /// From now on by name instead of by first use.
  void sort_categories() { sorts_categories_ = true; }

  /// The position of a split, which is added if it is new. File names are relative to `images`,
  /// or to a folder above it if some lie elsewhere.
  std::size_t split(std::string_view name, const Place& images);

  /// Marks an image that has a label, also one that is left out.
  void mark(const Place& image) { marked_.insert(image); }

  /// Marks an image and adds it to a split, once. `annotated`: the size in its label; `label`: for
  /// findings. nullopt, and a finding, if the size of the file cannot be read.
  std::optional<OpenImage> add_image(std::size_t split, const Place& file,
                                     std::optional<ImageSize> annotated, LabelPlace label);

  /// Adds an object and a finding for what is odd about it; leaves out what COCO cannot hold.
  void add(const OpenImage& image, ReadObject object, LabelPlace label);

  /// REQUIRES: called once. Throws Error if there is no image.
  std::vector<Split> finish() &&;
  /// The same, with a finding for each image that lies beside a marked one and is not marked.
  std::vector<Split> finish(const ImageFinder& images) &&;

 private:
  struct Part {
    std::string name;
    std::filesystem::path images;
    coco::Records records = {};
    std::vector<std::filesystem::path> files = {};  // of records.images
    std::map<Place, std::optional<OpenImage>> seen = {};
  };

  void name_files(Part& part) const;

  const Listing& folder_;
  coco::Findings& findings_;
  std::vector<std::string> categories_;
  std::map<std::string, int, std::less<>> category_positions_;
  bool sorts_categories_ = false;
  std::vector<Part> parts_;
  std::set<Place> marked_;
  std::int64_t last_image_ = 0, last_annotation_ = 0;
};

}  // namespace millrace::formats
