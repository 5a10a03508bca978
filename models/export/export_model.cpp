#include "millrace/models/export/export_model.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <nlohmann/json.hpp>

#include "millrace/models/onnx/detection.h"
#include "millrace/models/onnx/pixels.h"

namespace millrace {
namespace {

using onnx::Type;

/// Adds the nodes that resize an image of any size as for evaluation.
onnx::Images one_image(onnx::Graph& graph, const DataOptions& data) {
  const auto image = graph.input("image", Type::u8, {"height", "width", std::int64_t{3}},
                                 "RGB pixels of an image of any size");
  const auto size = onnx::sides_of(image, 0, 2);
  const auto side = data.settled_test_short_side();
  const auto resized = data.resize_style == ResizeStyle::square
                           ? graph.ints({side, side})
                           : onnx::resized_size(size, side, data.settled_test_max_side(),
                                                !rounds(data.resize_style));
  const auto scales = onnx::cast(resized, Type::f32) / onnx::cast(size, Type::f32);
  const auto pixels = data.resize_style == ResizeStyle::detectron2
                          ? onnx::resize_antialiased(image, resized)
                          : onnx::resize_bilinear(image, resized);
  return {.pixels = onnx::unsqueeze(pixels, {0}),
          .sizes = onnx::unsqueeze(resized, {0}),
          .scales = onnx::unsqueeze(onnx::gather(scales, graph.ints({1, 0}), 0), {0}),
          .originals = onnx::unsqueeze(size, {0}),
          .divisor = data.divisor,
          .single = true};
}

onnx::Images padded_images(onnx::Graph& graph, const DataOptions& data) {
  const auto pixels =
      graph.input("images", Type::u8, {"images", "height", "width", std::int64_t{3}},
                  "RGB pixels, each image in the top left corner of its slot");
  const auto sizes = graph.input("sizes", Type::i64, {"images", std::int64_t{2}},
                                 "height and width of each image within its slot");
  return {.pixels = pixels,
          .sizes = sizes,
          .scales = onnx::filled(onnx::sides_of(sizes, 0, 2), 1, Type::f32),
          .originals = sizes,
          .divisor = data.divisor,
          .single = false};
}

void name_outputs(onnx::Graph& graph, const onnx::Images& images, const onnx::Objects& objects,
                  const ExportOptions& options) {
  const onnx::Dimension count = "objects";
  graph.output("boxes", objects.boxes, {count, std::int64_t{4}},
               "x1 y1 x2 y2 in the pixels of the image");
  graph.output("scores", objects.scores, {count}, "best first, 0 .. 1");
  graph.output("labels", objects.labels, {count},
               "classes from 0 on, named by the metadata millrace.classes");
  if (objects.masks.defined()) {
    if (options.pasted)
      graph.output("masks", objects.masks, {count, "mask_height", "mask_width"},
                   "1 where the object is, of the image's size");
    else
      graph.output("masks", objects.masks, {count, "mask_cells", "mask_cells"},
                   "probabilities over each box, row by row");
  }
  if (!options.padded) return;
  const auto image = onnx::unsqueeze(onnx::range(onnx::side_of(images.sizes, 0)), {1});
  const auto own = onnx::cast(onnx::equal(image, onnx::unsqueeze(objects.images, {0})), Type::i64);
  graph.output("counts",
               graph.add("ReduceSum", {own, graph.ints({1})}, {{"keepdims", std::int64_t{0}}}),
               {"images"}, "number of objects of each image; objects are ordered by image");
}

}  // namespace

std::vector<std::filesystem::path> export_model(const Detector& detector, const ModelCard& card,
                                                const DataOptions& data,
                                                const ExportOptions& options,
                                                const std::filesystem::path& file,
                                                std::uint64_t inline_bytes) {
  onnx::Graph graph(detector.parameters(), options.storage);
  const auto images = options.padded ? padded_images(graph, data) : one_image(graph, data);
  const auto objects = detector.add_to(images, options.pasted);
  name_outputs(graph, images, objects, options);
  auto metadata = to_metadata(card);
  metadata["millrace.masks"] = !objects.masks.defined() ? "none"
                               : options.pasted         ? "pasted"
                                                        : "boxes";
  return graph.write(file,
                     {.name = detector.title(),
                      .doc = "Objects in images: see the metadata for classes and options.",
                      .producer_version = MILLRACE_VERSION,
                      .metadata = std::move(metadata)},
                     inline_bytes);
}

void round_weights(Detector& detector, onnx::Storage storage) {
  if (storage != onnx::Storage::fp16) return;
  const at::NoGradGuard no_grad;
  for (const auto& parameter : detector.parameters())
    if (parameter.value.dim() > 1)
      parameter.value.copy_(parameter.value.to(at::kHalf).to(at::kFloat));
  detector.parameters_changed();
}

}  // namespace millrace
