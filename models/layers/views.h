// Test-time augmentation: scaled and mirrored views of the same images.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/models/layers/objects.h"
#include "millrace/models/onnx/detection.h"

namespace millrace {

struct View {
  double scale = 1;  // sides of the view / sides of the batch's images
  bool flipped = false;

  bool changes() const { return scale != 1 || flipped; }
};

/// Returns a view for every scale; with flipping, each is followed by its mirrored view.
std::vector<View> views_of(const DetectionOptions& options);

/// Returns the batch's images in a view, without objects. The padded size is scaled as a whole, to
/// multiples of 32, so that images padded to one size have one size in every view.
Batch apply_view(const Batch& batch, const View& view);

/// A view in a graph.
struct ViewNodes {
  onnx::Value pixels, sizes;  // as in onnx::Images
  onnx::Value padded;         // list of height and width
  onnx::Value growth;         // (N, 4): view pixels per image pixel, x y x y
};
/// Adds the nodes of `apply_view`. `padded`: height and width of the images' batch. Throws Error
/// for a scale other than 1 if there may be several images.
ViewNodes apply_view(const onnx::Images& images, const onnx::Value& padded, const View& view);
/// Convert boxes (N, M, 4) out of a view, and boxes (D, 4) of `images` (D) into it.
onnx::Value out_of_view(const onnx::Value& boxes, const ViewNodes& nodes, const View& view);
onnx::Value into_view(const onnx::Value& boxes, const onnx::Value& images, const ViewNodes& nodes,
                      const View& view);

/// Convert boxes (D, 4) from pixels of an image to pixels of its view, and back.
at::Tensor into_view(const at::Tensor& boxes, const ImageInfo& image, const ImageInfo& in_view,
                     const View& view);
at::Tensor out_of_view(const at::Tensor& boxes, const ImageInfo& image, const ImageInfo& in_view,
                       const View& view);

}  // namespace millrace
