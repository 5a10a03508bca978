// type = "read": what the source says of an image.
#include "millrace/dataflow/detection/detection_stages.h"

namespace millrace {
namespace {

MILLRACE_REGISTER(detection_stages().add<NoOptions>(
    "read", "path, size and objects of an image; always the first stage",
    [](const Config&, const DetectionContext& context) { return source_stage(context.source); }));

}  // namespace
}  // namespace millrace
