#include "options.h"

namespace millrace::rtdetr {

void RtDetrOptions::describe(Options& o) {
  const Limits share{.min = 0, .max = 1}, weight{.min = 0, .max = 1000};
  pixels.describe(o);
  o.add("version", version,
        "v1, or v2, which scales sampling offsets by decoder.offset_scale and stores 1 / "
        "decoder.points in the weights")
      .affects(WeightEffect::tensors);
  o.add("norm_eps", norm_eps, "epsilon added to variances", {.min = 0, .max = 1})
      .affects(WeightEffect::meaning);

  o.add("backbone.type", backbone.type, "ResNet-vd variant",
        {BackboneType::resnet18, BackboneType::resnet34, BackboneType::resnet50,
         BackboneType::resnet101})
      .affects(WeightEffect::tensors);
  o.add("backbone.width", backbone.width, "channels of the first stage; published: 64",
        {.min = 16, .max = 1024})
      .affects(WeightEffect::tensors);
  o.add("backbone.norm", backbone.norm, "normalisation layers of the backbone",
        {Norm::frozen_bn, Norm::frozen_stats, Norm::bn, Norm::sync_bn})
      .affects(WeightEffect::tensors, {"frozen_bn", "frozen_stats", "bn", "sync_bn"});
  o.add("backbone.freeze_at", backbone.freeze_at,
        "number of frozen stages: 1 = stem, 2 = stem and C2, ...; 0 = none", {.min = 0, .max = 5});

  o.add("encoder.hidden_dim", encoder.hidden_dim, "channels of the hybrid encoder",
        {.min = 8, .max = 4096})
      .affects(WeightEffect::tensors);
  o.add("encoder.ffn_dim", encoder.ffn_dim, "hidden channels of the encoder's feed-forward network",
        {.min = 1, .max = 65536})
      .affects(WeightEffect::tensors);
  o.add("encoder.heads", encoder.heads, "attention heads of the encoder", {.min = 1, .max = 256})
      .affects(WeightEffect::meaning);
  o.add("encoder.expansion", encoder.expansion,
        "channels inside RepVGG blocks as a fraction of encoder.hidden_dim; published R18 and R34: "
        "0.5",
        {.min = 0.01, .max = 4})
      .affects(WeightEffect::tensors);
  o.add("encoder.norm", encoder.norm, "normalisation layers of the encoder",
        {Norm::bn, Norm::sync_bn})
      .affects(WeightEffect::tensors, {"bn", "sync_bn"});

  o.add("decoder.hidden_dim", decoder.hidden_dim, "channels of the queries",
        {.min = 4, .max = 4096})
      .affects(WeightEffect::tensors);
  o.add("decoder.ffn_dim", decoder.ffn_dim,
        "hidden channels of the decoder's feed-forward networks", {.min = 1, .max = 65536})
      .affects(WeightEffect::tensors);
  o.add("decoder.heads", decoder.heads, "attention heads of the decoder", {.min = 1, .max = 256})
      .affects(WeightEffect::tensors);
  o.add("decoder.layers", decoder.layers,
        "number of decoder layers, each refining the boxes; published: 3 for R18, 4 for R34, 6 for "
        "R50 and larger",
        {.min = 1, .max = 64})
      .affects(WeightEffect::tensors);
  o.add("decoder.points", decoder.points, "points that each head samples per feature map",
        {.min = 1, .max = 64})
      .affects(WeightEffect::tensors);
  o.add("decoder.offset_scale", decoder.offset_scale,
        "scale of sampling offsets, as a fraction of the box size", {.min = 0, .max = 100})
      .affects(WeightEffect::meaning);
  o.add("decoder.num_queries", decoder.num_queries,
        "number of queries, selected from the feature maps' positions (all if fewer)",
        {.min = 1, .max = 100000});

  o.add("denoising.num_queries", denoising.num_queries,
        "contrastive denoising: approximate number of noisy positive queries, with as many "
        "negatives; 0 = none",
        {.min = 0, .max = 10000})
      .affects(WeightEffect::tensors);
  o.add("denoising.label_noise", denoising.label_noise,
        "label noise: half of this fraction of denoising queries gets a random class", share);
  o.add("denoising.box_noise", denoising.box_noise,
        "maximum shift of box corners, in halves of a side; up to twice that for negatives",
        {.min = 0, .max = 10});

  o.add("match.class_weight", match.class_weight,
        "weight of the focal classification cost in matching", weight);
  o.add("match.bbox_weight", match.bbox_weight, "weight of the L1 box cost in matching", weight);
  o.add("match.giou_weight", match.giou_weight, "weight of the GIoU cost in matching", weight);
  o.add("match.focal_loss_alpha", match.focal_loss_alpha,
        "alpha of the focal cost: weight of the object", share);
  o.add("match.focal_loss_gamma", match.focal_loss_gamma,
        "gamma of the focal cost: larger reduces the cost of easy decisions",
        {.min = 0, .max = 10});

  o.add("loss.class_weight", loss.class_weight, "weight of the varifocal loss", weight);
  o.add("loss.bbox_weight", loss.bbox_weight, "weight of the L1 box loss", weight);
  o.add("loss.giou_weight", loss.giou_weight, "weight of the GIoU loss", weight);
  o.add("loss.varifocal_alpha", loss.varifocal_alpha,
        "alpha of the varifocal loss: weight of background", share);
  o.add("loss.varifocal_gamma", loss.varifocal_gamma,
        "gamma of the varifocal loss: larger reduces the weight of easy background",
        {.min = 0, .max = 10});

  o.add("test.score_thresh", test.score_thresh, "minimum score of detections, exclusive", share);
  o.add("test.detections_per_img", test.detections_per_img,
        "maximum number of detections per image", {.min = 1, .max = 1e5});
}

void RtDetrOptions::check(const Config& table) const {
  pixels.check(table);
  require(table, "encoder.hidden_dim", encoder.hidden_dim % 4 == 0,
          "must be a multiple of 4 (position embedding)");
  require(table, "encoder.heads", encoder.hidden_dim % encoder.heads == 0,
          "must divide encoder.hidden_dim");
  require(table, "decoder.heads", decoder.hidden_dim % decoder.heads == 0,
          "must divide decoder.hidden_dim");
  require(table, "match.class_weight",
          match.class_weight + match.bbox_weight + match.giou_weight > 0,
          "must not be 0 if match.bbox_weight and match.giou_weight are 0");
  require(table, "decoder.offset_scale", version == Version::v2 || decoder.offset_scale == 0.5,
          "must be 0.5 in v1; set version = \"v2\"");
}

}  // namespace millrace::rtdetr
