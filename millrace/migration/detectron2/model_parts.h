// The parts of a model of detectron2, each read in a file of its name. All throw ConfigError for
// what no model here has.
#pragma once

#include "millrace/migration/translation/translation.h"

namespace millrace::detectron2 {

/// Whether heads work on the ResNet's map of stride 16, without a pyramid (Base-RCNN-C4).
bool is_on_c4(Translation& t);

void read_resnet(Translation& t);
void read_anchors(Translation& t);
/// Faster, Mask and Cascade R-CNN.
void read_rcnn(Translation& t);
void read_retinanet(Translation& t);

}  // namespace millrace::detectron2
