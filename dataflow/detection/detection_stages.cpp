#include "millrace/dataflow/detection/detection_stages.h"

namespace millrace {

DetectionStages& detection_stages() {
  static DetectionStages stages("stage");
  return stages;
}

MILLRACE_REGISTER(detection_stages().add<NoOptions>(
    "read", "provides an image's path, size and objects; always the first stage",
    {[](const Config&, const DetectionContext& context) { return source_stage(context.source); }}));

}  // namespace millrace
