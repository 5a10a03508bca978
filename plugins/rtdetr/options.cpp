#include "options.h"

namespace rtdetr {

using millrace::Limits;
using millrace::OfWeights;

void RtDetrOptions::describe(Options& o) {
  const Limits share{.min = 0, .max = 1}, weight{.min = 0, .max = 1000};
  pixels.describe(o);
  o.add(
       "version", version,
       "v1, or v2: offsets are scaled by decoder.offset_scale, and weights keep 1 / decoder.points")
      .decides(OfWeights::tensors);
  o.add("norm_eps", norm_eps, "added to variances", {.min = 0, .max = 1})
      .decides(OfWeights::meaning);

  o.add("backbone.type", backbone.type, "the residual network, of the variant vd",
        {BackboneType::resnet18, BackboneType::resnet34, BackboneType::resnet50,
         BackboneType::resnet101})
      .decides(OfWeights::tensors);
  o.add("backbone.width", backbone.width,
        "channels of the first stage; 64 is the published network", {.min = 16, .max = 1024})
      .decides(OfWeights::tensors);
  o.add("backbone.norm", backbone.norm, "normalisation of the backbone",
        {Norm::frozen_bn, Norm::frozen_stats, Norm::bn, Norm::sync_bn})
      .decides(OfWeights::tensors, {"frozen_bn", "frozen_stats", "bn", "sync_bn"});
  o.add("backbone.freeze_at", backbone.freeze_at,
        "stages not trained: 1 the stem, 2 also C2, ...; 0 none", {.min = 0, .max = 5});

  o.add("encoder.hidden_dim", encoder.hidden_dim, "channels of the hybrid encoder",
        {.min = 8, .max = 4096})
      .decides(OfWeights::tensors);
  o.add("encoder.ffn_dim", encoder.ffn_dim, "hidden channels of its transformer layer",
        {.min = 1, .max = 65536})
      .decides(OfWeights::tensors);
  o.add("encoder.heads", encoder.heads, "of its attention", {.min = 1, .max = 256})
      .decides(OfWeights::meaning);
  o.add("encoder.expansion", encoder.expansion,
        "channels inside of its RepVGG blocks, in hidden_dim; the published R18 and R34: 0.5",
        {.min = 0.01, .max = 4})
      .decides(OfWeights::tensors);
  o.add("encoder.norm", encoder.norm, "normalisation of its convolutions",
        {Norm::bn, Norm::sync_bn})
      .decides(OfWeights::tensors, {"bn", "sync_bn"});

  o.add("decoder.hidden_dim", decoder.hidden_dim, "channels of the queries",
        {.min = 4, .max = 4096})
      .decides(OfWeights::tensors);
  o.add("decoder.ffn_dim", decoder.ffn_dim, "hidden channels of its layers",
        {.min = 1, .max = 65536})
      .decides(OfWeights::tensors);
  o.add("decoder.heads", decoder.heads, "of its attentions", {.min = 1, .max = 256})
      .decides(OfWeights::tensors);
  o.add("decoder.layers", decoder.layers,
        "that refine the boxes one after the other; published: 3 for R18, 4 for R34, 6 from R50 on",
        {.min = 1, .max = 64})
      .decides(OfWeights::tensors);
  o.add("decoder.points", decoder.points, "that a head samples of each map", {.min = 1, .max = 64})
      .decides(OfWeights::tensors);
  o.add("decoder.offset_scale", decoder.offset_scale,
        "how far, in sides of the box, an offset of decoder.points samples", {.min = 0, .max = 100})
      .decides(OfWeights::meaning);
  o.add("decoder.num_queries", decoder.num_queries,
        "places of the maps that become queries; all, where there are fewer",
        {.min = 1, .max = 100000});

  o.add("denoising.num_queries", denoising.num_queries,
        "contrastive denoising: about so many noisy objects and as many negatives are queries, "
        "too; 0: none",
        {.min = 0, .max = 10000})
      .decides(OfWeights::tensors);
  o.add("denoising.label_noise", denoising.label_noise,
        "twice the share of noisy objects that get a random class", share);
  o.add("denoising.box_noise", denoising.box_noise,
        "how far corners move: up to so many halves of a side, negatives up to twice as far",
        {.min = 0, .max = 10});

  o.add("match.class_weight", match.class_weight, "of the focal cost of a pair", weight);
  o.add("match.bbox_weight", match.bbox_weight, "of the L1 distance of its boxes", weight);
  o.add("match.giou_weight", match.giou_weight, "of their generalised IoU", weight);
  o.add("match.focal_loss_alpha", match.focal_loss_alpha, "weight of the object in the focal cost",
        share);
  o.add("match.focal_loss_gamma", match.focal_loss_gamma, "how much less an easy decision costs",
        {.min = 0, .max = 10});

  o.add("loss.class_weight", loss.class_weight, "of the varifocal loss", weight);
  o.add("loss.bbox_weight", loss.bbox_weight, "of the boxes' L1 loss", weight);
  o.add("loss.giou_weight", loss.giou_weight, "of the boxes' generalised IoU loss", weight);
  o.add("loss.varifocal_alpha", loss.varifocal_alpha, "weight of background in the varifocal loss",
        share);
  o.add("loss.varifocal_gamma", loss.varifocal_gamma, "how much less easy background counts",
        {.min = 0, .max = 10});

  o.add("test.score_thresh", test.score_thresh, "detections must exceed it", share);
  o.add("test.detections_per_img", test.detections_per_img, "maximum per image",
        {.min = 1, .max = 1e5});
}

void RtDetrOptions::check(const Config& table) const {
  using millrace::require;
  pixels.check(table);
  require(table, "encoder.hidden_dim", encoder.hidden_dim % 4 == 0,
          "must be a multiple of 4, the parts of its position embedding");
  require(table, "encoder.heads", encoder.hidden_dim % encoder.heads == 0,
          "must divide encoder.hidden_dim");
  require(table, "decoder.heads", decoder.hidden_dim % decoder.heads == 0,
          "must divide decoder.hidden_dim");
  require(table, "match.class_weight",
          match.class_weight + match.bbox_weight + match.giou_weight > 0,
          "must not be 0 where match.bbox_weight and match.giou_weight are, too");
  require(table, "decoder.offset_scale", version == Version::v2 || decoder.offset_scale == 0.5,
          "is 0.5 in v1; set version = \"v2\"");
}

}  // namespace rtdetr
