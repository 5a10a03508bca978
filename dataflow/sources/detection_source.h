// The samples of a split, as known before decoding.
#pragma once

#include <cstdint>
#include <vector>

#include "millrace/dataflow/detection/data_split.h"
#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/engine/source.h"

namespace millrace {

/// The usable images of a split as samples, by ascending image id. Immutable and thread-safe.
class DetectionSource final : public Source<Sample> {
 public:
  /// Leaves out objects that are marked `ignore` (unless they are crowds) or have less than a pixel
  /// inside their image. `filter_empty` also leaves out images without a usable object that is not
  /// a crowd.
  DetectionSource(DataSplit split, bool filter_empty);

  std::int64_t size() const override { return static_cast<std::int64_t>(images_.size()); }

  /// Returns path, size and objects, without pixels. Boxes are clipped to the image.
  Sample operator[](std::int64_t index) const override { return sample(index, true); }
  /// Returns the sample without outlines (see Instances).
  Sample about(std::int64_t index) const override { return sample(index, false); }

  /// Returns the number of objects of the classes to detect that are left out.
  std::int64_t unusable_objects() const { return ignored_ + thin_; }
  /// Logs the number of left-out objects and the reason, if there are any.
  void report_unusable() const;

 private:
  Sample sample(std::int64_t index, bool with_outlines) const;
  int class_of(const coco::Annotation& object) const;

  DataSplit split_;
  std::vector<int> class_of_category_;  // by coco::Dataset::category_index; -1 = not detected
  std::vector<std::uint32_t> images_;   // indices into coco::Dataset::images
  std::int64_t ignored_ = 0, thin_ = 0, first_thin_ = 0;  // object counts; id of the first thin one
};

/// Opens such a source and logs what is left out. Throws ConfigError if no image remains.
SourcePtr<Sample> open_source(DataSplit split, bool filter_empty);

}  // namespace millrace
