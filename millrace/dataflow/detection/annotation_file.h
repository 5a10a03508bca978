// The annotation file of a split, as the configuration wants its faults treated.
#pragma once

#include <filesystem>
#include <memory>

#include "millrace/coco/data/annotations.h"
#include "millrace/dataflow/detection/data_options.h"

namespace millrace {

/// `coco::read_dataset_cached`; unless `on_error` is "fail", annotations and images that break its
/// rules are left out, with a warning that counts them and names the first few. Throws Error where
/// more than `max_skipped` of the annotations or of the images do, or where the file as a whole
/// cannot be read.
std::shared_ptr<const coco::Dataset> read_annotations(const std::filesystem::path& file,
                                                      const FaultOptions& options);

}  // namespace millrace
