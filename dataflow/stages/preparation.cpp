// Registers the stages that every flow has; evaluation and the predictor call them by themselves.
#include "millrace/dataflow/detection/decode.h"
#include "millrace/dataflow/detection/detection_stages.h"
#include "millrace/dataflow/detection/pad.h"
#include "millrace/dataflow/detection/resize_shortest_edge.h"

namespace millrace {
namespace {

MILLRACE_REGISTER(
    register_stage<Decode>("reads and decodes the image: JPEG, PNG and what else OpenCV knows"));
MILLRACE_REGISTER(register_stage<ResizeShortestEdge>(
    "resizes the image, bilinearly, so that its shorter side has a given length"));
MILLRACE_REGISTER(
    register_stage<Pad>("puts a group of samples into one batch, padded with zeros to one size"));

}  // namespace
}  // namespace millrace
