#include "millrace/models/layers/results.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>

#include <algorithm>

#include "millrace/models/onnx/operations.h"
#include "millrace/models/ops/boxes.h"

namespace millrace {
namespace {

/// Returns weights (D, pixels, cells) of the cells of the objects' masks at the `pixels` of one
/// axis of the images: 0 = rows, 1 = columns.
onnx::Value weights_of_cells(const onnx::Objects& objects, const onnx::Images& images,
                             std::int64_t axis, const onnx::Value& pixels, std::int64_t cells,
                             bool padded) {
  auto& g = *pixels.graph;
  const auto column = [](const onnx::Value& of, std::int64_t at) {  // (D, 1)
    return onnx::slice(of, 1, at, at + 1);
  };
  const auto low = column(objects.boxes, 1 - axis), high = column(objects.boxes, 3 - axis);
  const auto pixel = onnx::cast(onnx::range(pixels), onnx::Type::f32);
  const auto count = static_cast<double>(cells);
  const auto hat = [&](const onnx::Value& place, double first) {
    const auto cell = g.constant(at::arange(cells, at::kFloat) + first, "cells");
    const auto away = onnx::unsqueeze(place, {2}) - cell;
    const auto distance = g.add("Max", {away, onnx::apply("Neg", away)});
    return onnx::apply("Relu", g.scalar(1, onnx::Type::f32) - distance);
  };
  if (!padded) return hat((pixel + 0.5 - low) / (high - low) * count - 0.5, 0);
  // torchvision's rule: a frame of zeros around the mask, a box of integer pixels, the border
  // repeated.
  const auto centre = (high + low) * 0.5, half = (high - low) * 0.5 * ((count + 2) / count);
  const auto whole = [](const onnx::Value& x) {  // rounds towards zero
    return onnx::cast(onnx::cast(x, onnx::Type::i64), onnx::Type::f32);
  };
  const auto begin = whole(centre - half), end = whole(centre + half);
  const auto step = g.scalar(count + 2, onnx::Type::f32) / onnx::maximum(end - begin + 1, 1);
  const auto place = onnx::maximum((pixel - begin + 0.5) * step - 0.5, 0);
  // The enlarged box may extend beyond its image, into the pixels of larger images of the batch.
  const auto side =
      onnx::cast(column(onnx::gather(images.originals, objects.images, 0), axis), onnx::Type::f32);
  const auto inside =
      onnx::cast((begin < pixel + 0.5) && (pixel < end + 0.5) && (pixel < side), onnx::Type::f32);
  return hat(place, 1) * onnx::unsqueeze(inside, {2});
}

/// Returns the boxes of one image, divided by its scales.
at::Tensor original_boxes(const at::Tensor& boxes, const ImageInfo& image, BoxScaling how) {
  if (how == BoxScaling::uniform) return boxes / std::max(image.scale_x, image.scale_y);
  const auto scales =
      at::tensor({image.scale_x, image.scale_y, image.scale_x, image.scale_y}, at::kFloat);
  return clip_boxes(boxes / scales, image.original_height, image.original_width);
}

onnx::Value original_boxes(const onnx::Images& images, const onnx::Objects& found, BoxScaling how) {
  auto& g = *found.boxes.graph;
  if (how == BoxScaling::uniform) {
    const auto larger = g.add("Max", {onnx::slice(images.scales, 1, 0, 1),
                                      onnx::slice(images.scales, 1, 1, 2)});  // (N, 1)
    return found.boxes / onnx::gather(larger, found.images, 0);
  }
  const auto scales = onnx::gather(images.scales, g.ints({0, 1, 0, 1}), 1);
  return clip_boxes(found.boxes / onnx::gather(scales, found.images, 0),
                    onnx::gather(limits_of(images.originals), found.images, 0));
}

}  // namespace

coco::Rle paste_mask(MaskPaste kind, const float* probabilities, std::int64_t size, const Box& box,
                     std::uint32_t height, std::uint32_t width) {
  const auto rule = kind == MaskPaste::padded ? coco::paste_framed : coco::paste;
  return rule(probabilities, static_cast<int>(size), box, height, width, 0.5F);
}

std::vector<std::vector<DetectedObject>> in_original_pixels(const Batch& batch,
                                                            const std::vector<Found>& found,
                                                            const at::Tensor& masks,
                                                            MaskPaste paste, BoxScaling how) {
  std::vector<std::vector<DetectedObject>> result(batch.size());
  const auto own_masks = masks.defined() ? masks.cpu() : masks;
  std::int64_t first = 0;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto& image = batch.images[i];
    const auto boxes = original_boxes(found[i].boxes.cpu(), image, how).contiguous();
    const auto scores = found[i].scores.cpu().contiguous(),
               labels = found[i].labels.cpu().contiguous();
    const auto* box = boxes.data_ptr<float>();
    result[i].resize(static_cast<std::size_t>(boxes.size(0)));
    at::parallel_for(0, boxes.size(0), 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t d = begin; d < end; ++d) {
        auto& object = result[i][static_cast<std::size_t>(d)];
        object.box = {box[d * 4], box[d * 4 + 1], box[d * 4 + 2], box[d * 4 + 3]};
        object.score = scores.data_ptr<float>()[d];
        object.label = static_cast<std::int32_t>(labels.data_ptr<std::int64_t>()[d]);
        if (!own_masks.defined()) continue;
        const auto size = own_masks.size(1);
        object.mask =
            paste_mask(paste, own_masks.data_ptr<float>() + (first + d) * size * size, size,
                       object.box, static_cast<std::uint32_t>(image.original_height),
                       static_cast<std::uint32_t>(image.original_width));
      }
    });
    first += boxes.size(0);
  }
  return result;
}

onnx::Objects in_original_pixels(const onnx::Images& images, const onnx::Objects& found,
                                 MaskPaste paste, std::int64_t cells, BoxScaling how) {
  auto& g = *found.boxes.graph;
  const auto in = g.in("original_pixels");
  auto result = found;
  result.boxes = original_boxes(images, found, how);
  if (cells == 0 || !found.masks.defined()) return result;
  const auto largest = g.add("ReduceMax", {images.originals},
                             {{"axes", onnx::Ints{0}}, {"keepdims", std::int64_t{0}}});
  const bool padded = paste == MaskPaste::padded;
  const auto weights = [&](std::int64_t axis) {
    return weights_of_cells(result, images, axis, onnx::slice(largest, 0, axis, axis + 1), cells,
                            padded);
  };
  const auto rows = weights(0), columns = weights(1);
  const auto values =
      g.add("MatMul", {g.add("MatMul", {rows, found.masks}), onnx::transpose(columns, {0, 2, 1})});
  const auto inside = padded ? values > 0.5 : values >= 0.5;
  result.masks = onnx::cast(inside, onnx::Type::u8);
  return result;
}

}  // namespace millrace
