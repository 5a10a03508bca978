// Test-time augmentation: the same images seen larger, smaller and mirrored.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/models/layers/objects.h"
#include "millrace/models/onnx/detection.h"

namespace millrace {

struct View {
  double scale = 1;  // sides of the view per side of the batch's images
  bool flipped = false;

  bool changes() const { return scale != 1 || flipped; }
};

/// Every scale; with flipping, each followed by its mirrored view.
std::vector<View> views_of(const DetectionOptions& options);

/// The batch's images in another view. The padded size is scaled as a whole, to multiples of 32:
/// what is padded to one size is so in every view. Without objects: views are for detecting.
Batch seen(const Batch& batch, const View& view);

/// A view in a graph.
struct ViewNodes {
  onnx::Value pixels, sizes;  // as in onnx::Images
  onnx::Value padded;         // a list of height and width
  onnx::Value growth;         // (N, 4): pixels of the view per pixel of the image, x y x y
};
/// `padded`: height and width of the images' batch. Throws Error for another scale than 1 where
/// there may be several images.
ViewNodes seen(const onnx::Images& images, const onnx::Value& padded, const View& view);
/// Boxes (N, M, 4) out of a view, and (D, 4) of `images` (D) into it.
onnx::Value out_of_view(const onnx::Value& boxes, const ViewNodes& nodes, const View& view);
onnx::Value into_view(const onnx::Value& boxes, const onnx::Value& images, const ViewNodes& nodes,
                      const View& view);

/// Boxes (D, 4) in pixels of an image into those of its view, and back.
at::Tensor into_view(const at::Tensor& boxes, const ImageInfo& image, const ImageInfo& in_view,
                     const View& view);
at::Tensor out_of_view(const at::Tensor& boxes, const ImageInfo& image, const ImageInfo& in_view,
                       const View& view);

}  // namespace millrace
