// The schemas of the operators that libtorch does not have. Each operator's file has its kernel for
// the CPU; a plug-in registers those for its device:
//
//     TORCH_LIBRARY_IMPL(millrace, CUDA, library) { library.impl("nms", nms); }
//
// Shapes and meaning are those of the functions of the same name, which check them; all tensors of
// a call are on one device. No kernel of training synchronizes with its device, so none returns a
// tensor whose size depends on values.
#include <torch/library.h>

TORCH_LIBRARY(millrace, library) {
  // Pixels (N, H, W, 3) byte -> (N, 3, height, width) of `type`, channels last. `sizes`: height and
  // width of each image, flattened.
  library.def(
      "normalize(Tensor pixels, int[] sizes, float[] mean, float[] deviation, bool bgr, "
      "int height, int width, ScalarType type) -> Tensor");
  // In place on y (N, C, H, W), channels last as `add` is: y + bias (C) + add, then ReLU, computed
  // in float.
  library.def("finish_convolution_(Tensor(a!) y, Tensor? bias, Tensor? add, bool relu) -> ()");
  // 3x3 convolution of stride 1 and padding 1 of one or several maps, with bias (K), `add` (empty,
  // or one for each map) and ReLU. All are channels last; maps and `add` are float or bf16, the
  // others float. CPU only.
  library.def(
      "winograd(Tensor[] maps, Tensor weight, Tensor? bias, Tensor[] add, bool relu) -> Tensor[]");
  // The `wanted` gradients of maps, weight and bias.
  library.def(
      "winograd_backward(Tensor[] gradients, Tensor[] maps, Tensor weight, bool[3] wanted) -> "
      "(Tensor[], Tensor, Tensor)");
  // The `wanted` gradients of maps, weight and bias of a convolution of one group, computed from
  // the pixels `rows` of each output, (S_l) int64 indices among its N H W; all other pixels have a
  // zero gradient. -1 = no pixel. CPU only.
  library.def(
      "sparse_convolution_backward(Tensor[] gradients, Tensor[] rows, Tensor[] maps, "
      "Tensor weight, int stride, int padding, bool[3] wanted) -> (Tensor[], Tensor, Tensor)");
  library.def(
      "nms(Tensor boxes, Tensor scores, Tensor groups, float threshold, float offset) -> Tensor");
  // `sizes`: height and width of each image, flattened. The arguments from `weights` on are those
  // of BoxCoder. Returns boxes (N, K, 4), best first and padded with zeros, and the number of boxes
  // of each image, (N) int64.
  library.def(
      "proposals(Tensor logits, Tensor deltas, Tensor anchors, int[] level_counts, float[] sizes, "
      "int before, int after, float threshold, float min_side, bool by_probability, "
      "float[] weights, float max_log_scale, float offset) -> (Tensor boxes, Tensor counts)");
  // boxes (N, P, 4); `begins` (N + 1) int64: index of each image's first truth.
  library.def(
      "match(Tensor truth, Tensor begins, Tensor boxes, float low, float high, bool low_quality, "
      "float offset) -> (Tensor truth, Tensor label)");
  // Counts of labels 1 and 0 in each chunk of 1024 of (N, P) int8: (N, P / 1024, 2) int32.
  library.def("label_counts(Tensor label) -> Tensor");
  // For each of `wanted` (R, 3 or more) int64, a row of image, label (1 or 0) and rank: the index
  // among the N P labels of the image's rank-th label of that value, (R) int64. `counts` are the
  // label_counts of `label`.
  library.def("ranked_labels(Tensor label, Tensor counts, Tensor wanted) -> Tensor");
  library.def(
      "roi_align(Tensor[] maps, Tensor rois, Tensor levels, int height, int width, float scale, "
      "int sampling_ratio, bool aligned) -> Tensor");
  // `sizes`: the four sizes of each map, flattened. Returns the maps' gradients, channels last.
  library.def(
      "roi_align_backward(Tensor grad_output, Tensor rois, Tensor levels, int[] sizes, "
      "float scale, int sampling_ratio, bool aligned) -> Tensor[]");
  // Adds roi_align_backward to gradients of maps, float or double, channels last. CPU only.
  library.def(
      "roi_align_add_gradients_(Tensor(a!)[] gradients, Tensor grad_output, Tensor rois, "
      "Tensor levels, float scale, int sampling_ratio, bool aligned) -> ()");
  // Binary targets (F, size, size) float of the polygons of `objects` (F) int64 inside boxes (F,
  // 4). `points`: x0 y0 x1 y1 ..., float64 pixels. Polygon p has the points polygon_begins[p] ..
  // polygon_begins[p + 1] - 1, object g the polygons object_begins[g] .. object_begins[g + 1] - 1.
  library.def(
      "mask_targets(Tensor points, Tensor polygon_begins, Tensor object_begins, Tensor objects, "
      "Tensor boxes, int size) -> Tensor");
  library.def("focal_loss(Tensor logits, Tensor classes, float alpha, float gamma) -> Tensor");
  // The gradient of `logits`; `factor` (one element) is the gradient of the loss.
  library.def(
      "focal_loss_backward(Tensor factor, Tensor logits, Tensor classes, float alpha, "
      "float gamma) -> Tensor");
}
