// RT-DETR's network: pixels in, what each layer says out. Names as in transformers, so that its
// files are ours. Shapes: N images, S places, Q queries, D denoising queries.
#pragma once

#include <ATen/core/Tensor.h>

#include <millrace/models/layers/layers.h>
#include <cstdint>
#include <vector>

#include "decoder.h"
#include "denoising.h"
#include "hybrid_encoder.h"
#include "options.h"
#include "query_selection.h"
#include "resnet_vd.h"

namespace rtdetr {

class Network {
 public:
  /// Declares its tensors under `scope`. Weights and their classes are on the CPU.
  Network(const Scope& scope, const RtDetrOptions& options, std::int64_t classes);

  /// The encoder's maps as one memory.
  struct Memory {
    at::Tensor places;  // (N, S, C), map after map, fine to coarse
    MapSizes sizes;
  };
  /// Pixels (N, 3, H, W); H and W multiples of 32.
  Memory encode(const at::Tensor& pixels, const NormPass& pass) const;

  struct Output {
    Selection selection;
    std::vector<Prediction> layers;  // of the D denoising queries, then the image's Q
  };
  /// Without `denoising` D is 0. `last_only` as in Decoder.
  Output decode(const Memory& memory, const DenoisingQueries* denoising,
                const DenoisingShape& shape, bool last_only) const;

  /// The output of the last layer without denoising, in a graph.
  PredictionNodes operator()(const onnx::Value& pixels) const;

  std::int64_t classes() const { return classes_; }

 private:
  std::int64_t classes_;
  ResNetVd backbone_;
  std::vector<ConvNorm> encoder_in_;
  HybridEncoder encoder_;
  at::Tensor denoising_classes_;  // (classes + 1, C)
  QuerySelection selection_;
  std::vector<ConvNorm> decoder_in_;
  Decoder decoder_;
};

}  // namespace rtdetr
