// The samples of a split: what is known of an image before it is decoded.
#pragma once

#include <cstdint>
#include <vector>

#include "dataflow/data_split.h"
#include "dataflow/sample.h"
#include "dataflow/source.h"

namespace millrace {

/// The usable images of a split as samples, by ascending image id. Const, so any thread may read.
class DetectionSource final : public Source<Sample> {
 public:
  /// `filter_empty`: leaves out images without an object that is usable and no crowd. Objects whose
  /// box has no area inside the image are left out; a warning says how many.
  DetectionSource(DataSplit split, bool filter_empty);

  std::int64_t size() const override { return static_cast<std::int64_t>(images_.size()); }

  /// Path, size and objects; no pixels yet. Boxes are clipped to the image.
  Sample operator[](std::int64_t index) const override;

  std::int64_t unusable_objects() const { return unusable_objects_; }

 private:
  int class_of(const coco::Annotation& object) const;

  DataSplit split_;
  std::vector<int> class_of_category_;  // by coco::Dataset::category_index; -1: does not count
  std::vector<std::uint32_t> images_;   // positions in coco::Dataset::images
  std::int64_t unusable_objects_ = 0;
};

/// The same. Throws ConfigError where no image is left.
SourcePtr<Sample> open_source(DataSplit split, bool filter_empty);

}  // namespace millrace
