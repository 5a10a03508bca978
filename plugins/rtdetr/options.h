// The options of RT-DETR. Defaults are those of the published R50 model.
#pragma once

#include <millrace/base/options.h>
#include <millrace/models/backbones/pyramid_options.h>
#include <millrace/models/layers/layers.h>
#include <millrace/models/layers/pixels.h>
#include <cstdint>
#include <string>

namespace millrace::rtdetr {

enum class Version {
  v1,  // Zhao et al. 2024
  v2,  // Lv et al. 2024: scaled offsets; the weights contain a buffer of the scale
};
inline std::vector<std::string> value_names(Version) { return {"v1", "v2"}; }

/// [model.backbone]: the ResNet-vd.
struct BackboneOptions {
  BackboneType type = BackboneType::resnet50;
  std::int64_t width = 64;
  Norm norm = Norm::frozen_bn;
  std::int64_t freeze_at = 0;
};

/// [model.encoder]
struct EncoderOptions {
  std::int64_t hidden_dim = 256;
  std::int64_t ffn_dim = 1024;
  std::int64_t heads = 8;
  double expansion = 1;
  Norm norm = Norm::sync_bn;
};

/// [model.decoder]
struct DecoderOptions {
  std::int64_t hidden_dim = 256;
  std::int64_t ffn_dim = 1024;
  std::int64_t heads = 8;
  std::int64_t layers = 6;
  std::int64_t points = 4;
  double offset_scale = 0.5;
  std::int64_t num_queries = 300;
};

/// [model.denoising]
struct DenoisingOptions {
  std::int64_t num_queries = 100;
  double label_noise = 0.5;
  double box_noise = 1;
};

/// [model.match]: the cost of a pair of a query and an object.
struct MatchOptions {
  double class_weight = 2, bbox_weight = 5, giou_weight = 2;
  double focal_loss_alpha = 0.25, focal_loss_gamma = 2;
};

/// [model.loss]
struct LossOptions {
  double class_weight = 1, bbox_weight = 5, giou_weight = 2;
  double varifocal_alpha = 0.75, varifocal_gamma = 2;
};

/// [model.test]
struct TestOptions {
  double score_thresh = 0;
  std::int64_t detections_per_img = 300;
};

struct RtDetrOptions {
  PixelOptions pixels{
      .pixel_order = ChannelOrder::rgb, .pixel_mean = {0, 0, 0}, .pixel_std = {255, 255, 255}};
  Version version = Version::v1;
  double norm_eps = 1e-5;
  BackboneOptions backbone;
  EncoderOptions encoder;
  DecoderOptions decoder;
  DenoisingOptions denoising;
  MatchOptions match;
  LossOptions loss;
  TestOptions test;

  void describe(Options& o);
  void check(const Config& table) const;
};

}  // namespace millrace::rtdetr
