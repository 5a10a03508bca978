#include "millrace/dataflow/detection/detection_stages.h"

namespace millrace {

DetectionStages& detection_stages() {
  static DetectionStages stages("stage");
  return stages;
}

}  // namespace millrace
