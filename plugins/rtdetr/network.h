// RT-DETR's network, from pixels to the output of each decoder layer. Tensors have the names of the
// package transformers, so that its files can be loaded. Shapes: N images, S map positions, Q
// queries, D denoising queries.
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

namespace millrace::rtdetr {

class Network {
 public:
  /// Declares the network's tensors under `scope`. All weights are on the CPU.
  Network(const Scope& scope, const RtDetrOptions& options, std::int64_t classes);

  /// The encoder's output maps, flattened and concatenated.
  struct Memory {
    at::Tensor places;  // (N, S, C), map after map, fine to coarse
    MapSizes sizes;
  };
  /// Computes the memory of pixels (N, 3, H, W); H and W are multiples of 32.
  Memory encode(const at::Tensor& pixels, const NormMode& mode) const;

  struct Output {
    Selection selection;
    std::vector<Prediction> layers;  // predictions for the D denoising queries, then the image's Q
  };
  /// Runs query selection and decoder. nullptr `denoising` = no denoising queries (D = 0).
  /// `last_only` as in Decoder.
  Output decode(const Memory& memory, const DenoisingQueries* denoising,
                const DenoisingShape& shape, bool last_only) const;

  /// Adds the nodes of the network without denoising to a graph. Returns the output of the last
  /// layer.
  PredictionNodes operator()(const onnx::Value& pixels) const;

  std::int64_t classes() const { return classes_; }

 private:
  /// Returns the encoder's output maps, fine to coarse.
  template <class X>
  std::vector<X> encoded(const X& pixels, const NormMode& mode) const;

  std::int64_t classes_;
  ResNetVd backbone_;
  std::vector<ConvNorm> encoder_in_;
  HybridEncoder encoder_;
  at::Tensor denoising_classes_;  // (classes + 1, C)
  QuerySelection selection_;
  std::vector<ConvNorm> decoder_in_;
  Decoder decoder_;
};

}  // namespace millrace::rtdetr
