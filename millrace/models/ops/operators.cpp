// The schemas of the operators that libtorch does not have. The file of each operator has its
// kernel for the CPU; a plug-in brings those for its device:
//
//     TORCH_LIBRARY_IMPL(millrace, CUDA, library) { library.impl("nms", nms); }
//
// Shapes and meaning are those of the functions of the same name, which check them; all tensors of
// a call lie on one device.
#include <torch/library.h>

TORCH_LIBRARY(millrace, library) {
  library.def(
      "nms(Tensor boxes, Tensor scores, Tensor groups, float threshold, float offset) -> Tensor");
  // `sizes`: height and width of each image, one after the other. From `weights` on: BoxCoder.
  library.def(
      "proposals(Tensor logits, Tensor deltas, Tensor anchors, int[] level_counts, float[] sizes, "
      "int before, int after, float threshold, float min_side, bool by_probability, "
      "float[] weights, float max_log_scale, float offset) -> Tensor[]");
  library.def(
      "match(Tensor truth, Tensor boxes, float low, float high, bool low_quality, float offset) "
      "-> (Tensor truth, Tensor label)");
  library.def(
      "roi_align(Tensor[] maps, Tensor rois, Tensor levels, int height, int width, float scale, "
      "int sampling_ratio, bool aligned) -> Tensor");
  // `sizes`: the four of each map, one map after the other. Gives the maps' gradients, channels
  // last.
  library.def(
      "roi_align_backward(Tensor grad_output, Tensor rois, Tensor levels, int[] sizes, "
      "float scale, int sampling_ratio, bool aligned) -> Tensor[]");
  // Binary targets (F, size, size) float of polygons inside boxes (F, 4). `points`: x0 y0 x1 y1
  // ..., float64 pixels; polygon p has the points polygon_begins[p] .. polygon_begins[p + 1],
  // object f the polygons object_begins[f] .. object_begins[f + 1].
  library.def(
      "mask_targets(Tensor points, Tensor polygon_begins, Tensor object_begins, Tensor boxes, "
      "int size) -> Tensor");
  library.def("focal_loss(Tensor logits, Tensor classes, float alpha, float gamma) -> Tensor");
}
