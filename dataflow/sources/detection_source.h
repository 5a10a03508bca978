// The samples of a split: what is known of an image before it is decoded.
#pragma once

#include <cstdint>
#include <vector>

#include "millrace/dataflow/detection/data_split.h"
#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/engine/source.h"

namespace millrace {

/// The usable images of a split as samples, by ascending image id. Const, so any thread may read.
class DetectionSource final : public Source<Sample> {
 public:
  /// Leaves out objects that are marked `ignore` (unless they are crowds) or have less than a pixel
  /// inside their image; `filter_empty`: also images without a usable object that is not a crowd.
  DetectionSource(DataSplit split, bool filter_empty);

  std::int64_t size() const override { return static_cast<std::int64_t>(images_.size()); }

  /// Path, size and objects; no pixels yet. Boxes are clipped to the image.
  Sample operator[](std::int64_t index) const override { return sample(index, true); }
  /// The same without outlines (see Instances).
  Sample about(std::int64_t index) const override { return sample(index, false); }

  /// Objects of the classes that count that are left out.
  std::int64_t unusable_objects() const { return ignored_ + thin_; }
  /// Logs how many and why, if any.
  void report_unusable() const;

 private:
  Sample sample(std::int64_t index, bool with_outlines) const;
  int class_of(const coco::Annotation& object) const;

  DataSplit split_;
  std::vector<int> class_of_category_;  // by coco::Dataset::category_index; -1: does not count
  std::vector<std::uint32_t> images_;   // positions in coco::Dataset::images
  std::int64_t ignored_ = 0, thin_ = 0, first_thin_ = 0;  // objects; the last one's id
};

/// The same, with such a report. Throws ConfigError if no image is left.
SourcePtr<Sample> open_source(DataSplit split, bool filter_empty);

}  // namespace millrace
