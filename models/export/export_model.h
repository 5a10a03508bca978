// Exports a detector as an ONNX file, from the bytes of an image to objects in its pixels.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "millrace/dataflow/detection/data_options.h"
#include "millrace/models/detector/detector.h"
#include "millrace/models/onnx/graph.h"
#include "millrace/models/weights/model_card.h"

namespace millrace {

/// The inputs of an ONNX file and its form of masks.
struct ExportOptions {
  /// False = `image` (H, W, 3) of any size, which the graph resizes as in [data]. True = `images`
  /// (N, H, W, 3), already resized and padded, and their `sizes` (N, 2).
  bool padded = false;
  /// Masks cover the whole image, uint8, instead of probabilities over each box.
  bool pasted = false;
  onnx::Storage storage = onnx::Storage::fp32;
};

/// Writes the model: `card` describes it, `data` the preparation of its images. Outputs are `boxes`
/// (D, 4) x1 y1 x2 y2 in the image's pixels, `scores` (D) descending, `labels` (D), and `masks` if
/// the detector gives them; if padded, also `counts` (N), the number of objects of each image, and
/// objects are ordered by image. Tensors that take more than `inline_bytes` in all are stored in
/// FILE.data. Returns the files written. Throws Error for a detector or option that cannot be
/// exported, or a file that cannot be written.
std::vector<std::filesystem::path> export_model(
    const Detector& detector, const ModelCard& card, const DataOptions& data,
    const ExportOptions& options, const std::filesystem::path& file,
    std::uint64_t inline_bytes = onnx::Graph::kInlineBytes);

/// Rounds a detector's weights as `storage` does, so that it computes what the file computes.
void round_weights(Detector& detector, onnx::Storage storage);

}  // namespace millrace
