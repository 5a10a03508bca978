// The schemas of the operators that libtorch does not have. The file of each operator has its
// kernel for the CPU; a plug-in brings those for its device:
//
//     TORCH_LIBRARY_IMPL(millrace, CUDA, library) { library.impl("nms", nms); }
//
// Shapes and meaning are those of the functions of the same name, which check them; all tensors of
// a call lie on one device. In training no kernel makes the host wait for its device, so none gives
// a tensor whose size depends on values.
#include <torch/library.h>

TORCH_LIBRARY(millrace, library) {
  // Pixels (N, H, W, 3) byte -> (N, 3, height, width) of `type`, channels last. `sizes`: true
  // height and width of each image, one after the other.
  library.def(
      "normalize(Tensor pixels, int[] sizes, float[] mean, float[] deviation, bool bgr, "
      "int height, int width, ScalarType type) -> Tensor");
  // In place on y (N, C, H, W), channels last as `add` is: y + bias (C) + add, then a ReLU; in
  // float.
  library.def("finish_convolution_(Tensor(a!) y, Tensor? bias, Tensor? add, bool relu) -> ()");
  // A 3x3 convolution of stride 1 and padding 1 of one or several maps, with bias (K), sums (none,
  // or one for each map) and a ReLU; all channels last, maps and what is added float or bf16, the
  // others float. For CPUs alone.
  library.def(
      "winograd(Tensor[] maps, Tensor weight, Tensor? bias, Tensor[] add, bool relu) -> Tensor[]");
  // The gradients that are wanted, of maps, weight and bias.
  library.def(
      "winograd_backward(Tensor[] gradients, Tensor[] maps, Tensor weight, bool[3] wanted) -> "
      "(Tensor[], Tensor, Tensor)");
  // The gradients that are wanted, of maps, weight and bias of a convolution of one group, from the
  // pixels `rows` of each output, (S_l) int64 places among its N H W: the others have none. -1: no
  // pixel. For CPUs alone.
  library.def(
      "sparse_convolution_backward(Tensor[] gradients, Tensor[] rows, Tensor[] maps, "
      "Tensor weight, int stride, int padding, bool[3] wanted) -> (Tensor[], Tensor, Tensor)");
  library.def(
      "nms(Tensor boxes, Tensor scores, Tensor groups, float threshold, float offset) -> Tensor");
  // `sizes`: height and width of each image, one after the other. From `weights` on: BoxCoder.
  // Gives boxes (N, K, 4), best first, and how many each image has, (N) int64; zeros follow.
  library.def(
      "proposals(Tensor logits, Tensor deltas, Tensor anchors, int[] level_counts, float[] sizes, "
      "int before, int after, float threshold, float min_side, bool by_probability, "
      "float[] weights, float max_log_scale, float offset) -> (Tensor boxes, Tensor counts)");
  // boxes (N, P, 4); `begins` (N + 1) int64: where each image's truths begin; none: N is 1.
  library.def(
      "match(Tensor truth, Tensor? begins, Tensor boxes, float low, float high, bool low_quality, "
      "float offset) -> (Tensor truth, Tensor label)");
  // How many of each 1024 labels of (N, P) int8 are 1 and how many are 0: (N, P / 1024, 2) int32.
  library.def("label_counts(Tensor label) -> Tensor");
  // `counts` of these labels; `wanted` (R, 3 or more) int64: image, label (1 or 0) and rank. Gives
  // the place in the N P labels of the label of that rank among the image's equal ones, (R) int64.
  library.def("ranked_labels(Tensor label, Tensor counts, Tensor wanted) -> Tensor");
  library.def(
      "roi_align(Tensor[] maps, Tensor rois, Tensor levels, int height, int width, float scale, "
      "int sampling_ratio, bool aligned) -> Tensor");
  // `sizes`: the four of each map, one map after the other. Gives the maps' gradients, channels
  // last.
  library.def(
      "roi_align_backward(Tensor grad_output, Tensor rois, Tensor levels, int[] sizes, "
      "float scale, int sampling_ratio, bool aligned) -> Tensor[]");
  // roi_align_backward added to gradients of maps, float or double, channels last. For CPUs alone.
  library.def(
      "roi_align_add_gradients_(Tensor(a!)[] gradients, Tensor grad_output, Tensor rois, "
      "Tensor levels, float scale, int sampling_ratio, bool aligned) -> ()");
  // Binary targets (F, size, size) float of the polygons of `objects` (F) int64 inside boxes (F,
  // 4). `points`: x0 y0 x1 y1 ..., float64 pixels; polygon p has the points polygon_begins[p] ..
  // polygon_begins[p + 1], object g the polygons object_begins[g] .. object_begins[g + 1].
  library.def(
      "mask_targets(Tensor points, Tensor polygon_begins, Tensor object_begins, Tensor objects, "
      "Tensor boxes, int size) -> Tensor");
  library.def("focal_loss(Tensor logits, Tensor classes, float alpha, float gamma) -> Tensor");
  // The gradient of `logits` where that of the loss is `factor`, one number.
  library.def(
      "focal_loss_backward(Tensor factor, Tensor logits, Tensor classes, float alpha, "
      "float gamma) -> Tensor");
}
