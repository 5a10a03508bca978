// What several heads of MMDetection have.
#pragma once

#include <string>
#include <vector>

#include "millrace/migration/translation/translation.h"

namespace millrace::mmdetection {

/// The `anchor_generator` of a head.
void read_anchors(Translation& t, const std::string& head);

/// Weights of dx dy dw dh: those of the `bbox_coder` of a head, one over its deviations.
std::vector<double> coder_weights(Translation& t, const std::string& head);

/// The `loss_bbox` of a head: sets smooth_l1_beta in our table, or giou where `giou` allows it.
void read_box_loss(Translation& t, const std::string& head, const std::string& table, bool giou);

/// The `assigner` of a training's configuration. Sets our `foreground` to its upper threshold, and
/// `background` to the lower one; empty: there is one threshold. `notes_floor`: an IoU that an
/// object's best anchor must have is noted.
void read_assigner(Translation& t, const std::string& above, const std::string& background,
                   const std::string& foreground, bool notes_floor);

/// The `sampler` of a training's configuration, into our table.
void read_sampler(Translation& t, const std::string& above, const std::string& table);

/// What stands in a training's configuration and changes nothing.
void note_debug(Translation& t, const std::string& above);

/// Which detections of an image are kept: score_thr, nms, max_per_img.
void read_detections(Translation& t, const std::string& path);

}  // namespace millrace::mmdetection
