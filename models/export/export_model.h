// A detector as an ONNX file, from the bytes of an image to objects in its pixels.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "millrace/dataflow/detection/data_options.h"
#include "millrace/models/detector/detector.h"
#include "millrace/models/onnx/graph.h"
#include "millrace/models/weights/model_card.h"

namespace millrace {

/// What an ONNX file takes and how it gives masks.
struct ExportOptions {
  /// False: `image` (H, W, 3) of any size, which the graph resizes by [data]. True: `images`
  /// (N, H, W, 3), resized and padded before, and their `sizes` (N, 2).
  bool padded = false;
  /// Masks over the whole image, uint8, instead of probabilities over each box.
  bool pasted = false;
  onnx::Storage storage = onnx::Storage::fp32;
};

/// Writes the model: `card` says what it is, `data` how its images are prepared. Outputs `boxes`
/// (D, 4) x1 y1 x2 y2 in the image's pixels, `scores` (D) falling, `labels` (D), `masks` where the
/// detector gives them; padded also `counts` (N): objects of each image, which come one image after
/// the other. Returns the files written: where tensors take more than `inline_bytes`, FILE.data
/// holds them. Throws Error for a detector or option that cannot be exported, or a file that cannot
/// be written.
std::vector<std::filesystem::path> export_model(
    const Detector& detector, const ModelCard& card, const DataOptions& data,
    const ExportOptions& options, const std::filesystem::path& file,
    std::uint64_t inline_bytes = onnx::Graph::kInlineBytes);

/// Rounds a detector's weights to those that `storage` keeps, so that it computes what the file
/// does.
void round_weights(Detector& detector, onnx::Storage storage);

}  // namespace millrace
