// Small readers of detectron2's keys.
#pragma once

#include <string>
#include <vector>

#include "millrace/migration/translation/translation.h"

namespace millrace::detectron2 {

/// A value that must be one of these, as a string or as Python writes it, else the model is none of
/// ours: ConfigError.
std::string must(Translation& t, const std::string& theirs,
                 const std::vector<std::string>& possible);

/// Sets `ours` to the norm at `theirs`. Throws ConfigError for another norm than ours.
void put_norm(Translation& t, const std::string& theirs, const std::string& ours);

/// The number of classes, which the data set says here.
void read_classes(Translation& t, const std::string& path);

/// Which anchors are background, ignored and foreground: IOU_THRESHOLDS and IOU_LABELS of `theirs`,
/// into our table.
void read_anchor_matching(Translation& t, const std::string& theirs, const std::string& table);

/// The loss of boxes, into our table: its kind, and where (smooth) L1 bends.
void read_box_loss(Translation& t, const std::string& kind, const std::string& beta,
                   const std::string& table);

/// The weights of deltas that are not weighted.
Value ones();

}  // namespace millrace::detectron2
