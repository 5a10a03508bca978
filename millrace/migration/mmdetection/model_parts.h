// The parts of a model of MMDetection, each read in a file of its name. All throw ConfigError for
// what no model here has. Those that return a flag say whether norms of the part are trained.
#pragma once

#include "millrace/migration/mmdetection/parts.h"
#include "millrace/migration/translation/translation.h"

namespace millrace::mmdetection {

bool read_backbone(Translation& t);
/// `retina`: the pyramid is RetinaNet's, whose P6 and P7 have weights.
bool read_neck(Translation& t, bool retina);
void read_rpn(Translation& t, const Layout& layout);
bool read_roi_head(Translation& t, const Layout& layout, bool cascade, bool masks);
bool read_retina_head(Translation& t, const Layout& layout);

}  // namespace millrace::mmdetection
