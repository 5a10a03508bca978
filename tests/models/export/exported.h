// Exports small detectors that find many objects, with a certificate computed on generated images.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "millrace/models/detector/make_detector.h"
#include "millrace/models/detector/restore.h"
#include "millrace/models/export/certificate.h"
#include "millrace/models/weights/formats.h"
#include "millrace/models/weights/weights.h"
#include "tests/models/small_batch.h"
#include "tests/support/scratch.h"

namespace millrace::testing {

/// Returns an untrained detector whose outputs are scaled so that scores have no ties and boxes
/// differ from their anchors.
inline std::unique_ptr<Detector> decided_detector(const SmallKind& kind, int most = 50) {
  auto detector =
      small_detector(kind.name, kind.more + fmt::format("test.detections_per_img = {}\n", most));
  const at::NoGradGuard no_grad;
  for (const auto& parameter : detector->parameters()) {
    const auto has = [&](const char* word) {
      return parameter.name.find(word) != std::string::npos;
    };
    if (has("mask_fcn_logits.bias")) parameter.value.fill_(0.2);  // no probability of exactly 1/2
    if (!parameter.name.ends_with(".weight")) continue;
    if (has("cls_score") || has("cls_logits")) parameter.value.mul_(20);
    // Keeps probabilities away from 0 and 1: between a 0 and a 1, a pasted pixel is often exactly
    // 1/2.
    if (has("mask_fcn_logits")) parameter.value.mul_(0.02 / parameter.value.std());
    if (has("bbox_pred") || has("bbox_reg")) parameter.value.mul_(5);
  }
  detector->parameters_changed();
  return detector;
}

/// Returns an image of stripes and noise.
inline NamedPixels made_photo(int width, int height, std::uint64_t seed) {
  NamedPixels photo{std::to_string(width) + "x" + std::to_string(height),
                    cv::Mat(height, width, CV_8UC3)};
  Rng rng{seed};
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width * 3; ++x)
      photo.pixels.ptr(y)[x] =
          static_cast<std::uint8_t>((x / 24 + y / 12) % 2 * 90 + static_cast<int>(rng.below(120)));
  return photo;
}

inline DataOptions prepared_data(std::int64_t short_side = 96, std::int64_t max_side = 160) {
  DataOptions data;
  data.short_side = {short_side};
  data.max_side = max_side;
  return data;
}

/// Exports a detector with its certificate and returns the path of the model file.
inline std::filesystem::path exported(Detector& detector, const SmallKind& kind,
                                      const Scratch& scratch,
                                      const std::vector<NamedPixels>& photos,
                                      const ExportOptions& options = {},
                                      const DataOptions& data = prepared_data(),
                                      std::uint64_t inline_bytes = onnx::Graph::kInlineBytes) {
  ModelCard card{.model = parse_config("type = '" + kind.name + "'\n" + kind.more, "small.toml"),
                 .data = {},
                 .classes = {"star", "ring", "disc"},
                 .category_ids = {}};
  if (kind.more.find("'torchvision'") != std::string::npos)
    card.model.set_path("mask.paste", {std::string("padded"), {}});
  round_weights(detector, options.storage);
  const auto weights = scratch / "weights.safetensors", model = scratch / "model.onnx";
  write_weights(weights, named_values(detector));
  const auto files = export_model(detector, card, data, options, model, inline_bytes);
  write_certificate(detector, card, data, options, photos, weights, files);
  return model;
}

}  // namespace millrace::testing
