#include "millrace/weights/schemes.h"

#include <ATen/ops/full.h>

#include <algorithm>
#include <map>
#include <optional>

#include "millrace/base/errors.h"
#include "millrace/base/text.h"
#include "millrace/weights/name_pattern.h"

namespace millrace {
namespace {

using enum LayerKind;

const std::vector<TensorSuffix> kTorchSuffixes = {
    {conv, ".weight", ".weight"},
    {conv, ".bias", ".bias"},
    {norm, ".weight", ".weight"},
    {norm, ".bias", ".bias"},
    {norm, ".running_mean", ".running_mean"},
    {norm, ".running_var", ".running_var"},
    {linear, ".weight", ".weight"},
    {linear, ".bias", ".bias"},
};

const std::vector<Scheme> kSchemes = {
    {.name = "torchvision",
     .doc = "torchvision 0.13 and later; our own names",
     .background = Background::first,
     .background_has_mask = true},

    {.name = "torchvision-2019",
     .doc = "torchvision until 0.12, and its published files of 2019",
     .layers =
         {
             {conv, "backbone.fpn.inner_blocks.{a}.0", "backbone.fpn.inner_blocks.{a}"},
             {conv, "backbone.fpn.layer_blocks.{a}.0", "backbone.fpn.layer_blocks.{a}"},
             {conv, "rpn.head.conv.0.0", "rpn.head.conv"},
             {conv, "roi_heads.mask_head.{a}.0", "roi_heads.mask_head.mask_fcn{a+1}"},
         },
     .suffixes = kTorchSuffixes,
     .same_as_ours = {"backbone.body.", "rpn.head.cls_logits.", "rpn.head.bbox_pred.",
                      "roi_heads.box_head.fc", "roi_heads.box_predictor.",
                      "roi_heads.mask_predictor."},
     .background = Background::first,
     .background_has_mask = true},

    {.name = "detectron2",
     .doc = "detectron2: class axes with the background last",
     .layers =
         {
             {conv, "backbone.body.conv1", "backbone.bottom_up.stem.conv1"},
             {norm, "backbone.body.bn1", "backbone.bottom_up.stem.conv1.norm"},
             {conv, "backbone.body.layer{a}.{b}.conv{c}",
              "backbone.bottom_up.res{a+1}.{b}.conv{c}"},
             {norm, "backbone.body.layer{a}.{b}.bn{c}",
              "backbone.bottom_up.res{a+1}.{b}.conv{c}.norm"},
             {conv, "backbone.body.layer{a}.{b}.downsample.0",
              "backbone.bottom_up.res{a+1}.{b}.shortcut"},
             {norm, "backbone.body.layer{a}.{b}.downsample.1",
              "backbone.bottom_up.res{a+1}.{b}.shortcut.norm"},
             {conv, "backbone.fpn.inner_blocks.{a}.0", "backbone.fpn_lateral{a+2}"},
             {norm, "backbone.fpn.inner_blocks.{a}.1", "backbone.fpn_lateral{a+2}.norm"},
             {conv, "backbone.fpn.layer_blocks.{a}.0", "backbone.fpn_output{a+2}"},
             {norm, "backbone.fpn.layer_blocks.{a}.1", "backbone.fpn_output{a+2}.norm"},
             {conv, "rpn.head.conv.0.0", "proposal_generator.rpn_head.conv"},
             {conv, "rpn.head.cls_logits", "proposal_generator.rpn_head.objectness_logits"},
             {conv, "rpn.head.bbox_pred", "proposal_generator.rpn_head.anchor_deltas"},
             {linear, "roi_heads.box_head.fc6", "roi_heads.box_head.fc1"},
             {linear, "roi_heads.box_head.fc7", "roi_heads.box_head.fc2"},
             {linear, "roi_heads.box_head.{a}.fc6", "roi_heads.box_head.{a}.fc1"},
             {linear, "roi_heads.box_head.{a}.fc7", "roi_heads.box_head.{a}.fc2"},
             {linear, "roi_heads.box_predictor.{a}.cls_score",
              "roi_heads.box_predictor.{a}.cls_score"},
             {linear, "roi_heads.box_predictor.{a}.bbox_pred",
              "roi_heads.box_predictor.{a}.bbox_pred"},
             {linear, "roi_heads.box_predictor.cls_score", "roi_heads.box_predictor.cls_score"},
             {linear, "roi_heads.box_predictor.bbox_pred", "roi_heads.box_predictor.bbox_pred"},
             {conv, "roi_heads.mask_head.{a}.0", "roi_heads.mask_head.mask_fcn{a+1}"},
             {norm, "roi_heads.mask_head.{a}.1", "roi_heads.mask_head.mask_fcn{a+1}.norm"},
             {conv, "roi_heads.mask_predictor.conv5_mask", "roi_heads.mask_head.deconv"},
             {conv, "roi_heads.mask_predictor.mask_fcn_logits", "roi_heads.mask_head.predictor"},
         },
     .suffixes = kTorchSuffixes,
     .background = Background::last},

    {.name = "tensorpack",
     .doc = "tensorpack and aws-samples/mask-rcnn-tensorflow: TensorFlow's layouts",
     .layers =
         {
             {conv, "backbone.body.conv1", "conv0"},
             {norm, "backbone.body.bn1", "conv0/bn"},
             {conv, "backbone.body.layer{a}.{b}.conv{c}", "group{a-1}/block{b}/conv{c}"},
             {norm, "backbone.body.layer{a}.{b}.bn{c}", "group{a-1}/block{b}/conv{c}/bn"},
             {conv, "backbone.body.layer{a}.{b}.downsample.0", "group{a-1}/block{b}/convshortcut"},
             {norm, "backbone.body.layer{a}.{b}.downsample.1",
              "group{a-1}/block{b}/convshortcut/bn"},
             {conv, "backbone.fpn.inner_blocks.{a}.0", "fpn/lateral_1x1_c{a+2}"},
             {norm, "backbone.fpn.inner_blocks.{a}.1", "fpn/gn_c{a+2}"},
             {conv, "backbone.fpn.layer_blocks.{a}.0", "fpn/posthoc_3x3_p{a+2}"},
             {norm, "backbone.fpn.layer_blocks.{a}.1", "fpn/gn_p{a+2}"},
             {conv, "rpn.head.conv.0.0", "rpn/conv0"},
             {conv, "rpn.head.cls_logits", "rpn/class"},
             {conv, "rpn.head.bbox_pred", "rpn/box"},
             {linear, "roi_heads.box_head.fc6", "fastrcnn/fc6"},
             {linear, "roi_heads.box_head.fc7", "fastrcnn/fc7"},
             {linear, "roi_heads.box_head.{a}.fc6", "cascade_rcnn_stage{a+1}/head/fc6"},
             {linear, "roi_heads.box_head.{a}.fc7", "cascade_rcnn_stage{a+1}/head/fc7"},
             {linear, "roi_heads.box_predictor.{a}.cls_score",
              "cascade_rcnn_stage{a+1}/outputs/class"},
             {linear, "roi_heads.box_predictor.{a}.bbox_pred",
              "cascade_rcnn_stage{a+1}/outputs/box"},
             {linear, "roi_heads.box_predictor.cls_score", "fastrcnn/outputs/class"},
             {linear, "roi_heads.box_predictor.bbox_pred", "fastrcnn/outputs/box"},
             {conv, "roi_heads.mask_head.{a}.0", "maskrcnn/fcn{a}"},
             {norm, "roi_heads.mask_head.{a}.1", "maskrcnn/gn{a}"},
             {conv, "roi_heads.mask_predictor.conv5_mask", "maskrcnn/deconv"},
             {conv, "roi_heads.mask_predictor.mask_fcn_logits", "maskrcnn/conv"},
         },
     .suffixes =
         {
             {conv, ".weight", "/W"},
             {conv, ".bias", "/b"},
             {norm, ".weight", "/gamma"},
             {norm, ".bias", "/beta"},
             {norm, ".running_mean", "/mean/EMA"},
             {norm, ".running_var", "/variance/EMA"},
             {linear, ".weight", "/W"},
             {linear, ".bias", "/b"},
         },
     .kernels_last = true,
     .folds_norms = true,
     .background = Background::first},

    {.name = "resnet",
     .doc = "torchvision's classifiers (resnet50-*.pth): the backbone alone",
     .layers =
         {
             {conv, "backbone.body.conv1", "conv1"},
             {norm, "backbone.body.bn1", "bn1"},
             {conv, "backbone.body.layer{a}.{b}.conv{c}", "layer{a}.{b}.conv{c}"},
             {norm, "backbone.body.layer{a}.{b}.bn{c}", "layer{a}.{b}.bn{c}"},
             {conv, "backbone.body.layer{a}.{b}.downsample.0", "layer{a}.{b}.downsample.0"},
             {norm, "backbone.body.layer{a}.{b}.downsample.1", "layer{a}.{b}.downsample.1"},
         },
     .suffixes = kTorchSuffixes},

    {.name = "caffe2",
     .doc = "the ImageNet networks of detectron2's model zoo (MSRA/R-50.pkl): the backbone alone",
     .layers =
         {
             {conv, "backbone.body.conv1", "conv1"},
             {norm, "backbone.body.bn1", "res_conv1_bn"},
             {conv, "backbone.body.layer{a}.{b}.conv1", "res{a+1}_{b}_branch2a"},
             {norm, "backbone.body.layer{a}.{b}.bn1", "res{a+1}_{b}_branch2a_bn"},
             {conv, "backbone.body.layer{a}.{b}.conv2", "res{a+1}_{b}_branch2b"},
             {norm, "backbone.body.layer{a}.{b}.bn2", "res{a+1}_{b}_branch2b_bn"},
             {conv, "backbone.body.layer{a}.{b}.conv3", "res{a+1}_{b}_branch2c"},
             {norm, "backbone.body.layer{a}.{b}.bn3", "res{a+1}_{b}_branch2c_bn"},
             {conv, "backbone.body.layer{a}.{b}.downsample.0", "res{a+1}_{b}_branch1"},
             {norm, "backbone.body.layer{a}.{b}.downsample.1", "res{a+1}_{b}_branch1_bn"},
         },
     .suffixes =
         {
             {conv, ".weight", "_w"},
             {conv, ".bias", "_b"},
             {norm, ".weight", "_s"},
             {norm, ".bias", "_b"},
             {norm, ".running_mean", "_rm"},
             {norm, ".running_var", "_riv"},
         },
     .folds_norms = true},

    {.name = "caffe2-gn",
     .doc = "the same with group norm (FAIR/R-50-GN.pkl)",
     .layers =
         {
             {conv, "backbone.body.conv1", "conv1"},
             {norm, "backbone.body.bn1", "conv1_gn"},
             {conv, "backbone.body.layer{a}.{b}.conv1", "res{a+1}_{b}_branch2a"},
             {norm, "backbone.body.layer{a}.{b}.bn1", "res{a+1}_{b}_branch2a_gn"},
             {conv, "backbone.body.layer{a}.{b}.conv2", "res{a+1}_{b}_branch2b"},
             {norm, "backbone.body.layer{a}.{b}.bn2", "res{a+1}_{b}_branch2b_gn"},
             {conv, "backbone.body.layer{a}.{b}.conv3", "res{a+1}_{b}_branch2c"},
             {norm, "backbone.body.layer{a}.{b}.bn3", "res{a+1}_{b}_branch2c_gn"},
             {conv, "backbone.body.layer{a}.{b}.downsample.0", "res{a+1}_{b}_branch1"},
             {norm, "backbone.body.layer{a}.{b}.downsample.1", "res{a+1}_{b}_branch1_gn"},
         },
     .suffixes =
         {
             {conv, ".weight", "_w"},
             {conv, ".bias", "_b"},
             {norm, ".weight", "_s"},
             {norm, ".bias", "_b"},
         }},
};

/// Our names of a convolution of the backbone and of its norm.
constexpr std::pair<std::string_view, std::string_view> kNormOfConv[] = {
    {"backbone.body.conv1", "backbone.body.bn1"},
    {"backbone.body.layer{a}.{b}.conv{c}", "backbone.body.layer{a}.{b}.bn{c}"},
    {"backbone.body.layer{a}.{b}.downsample.0", "backbone.body.layer{a}.{b}.downsample.1"},
};

struct Translation {
  std::string name;
  LayerKind kind;
};

/// A name by one column of a scheme's table, in the other one.
std::optional<Translation> translate(const Scheme& scheme, std::string_view name,
                                     std::string_view LayerName::*from_layer,
                                     std::string_view LayerName::*to_layer,
                                     std::string_view TensorSuffix::*from_suffix,
                                     std::string_view TensorSuffix::*to_suffix) {
  for (const auto& suffix : scheme.suffixes) {
    if (!name.ends_with(suffix.*from_suffix)) continue;
    const auto layer = name.substr(0, name.size() - (suffix.*from_suffix).size());
    for (const auto& row : scheme.layers) {
      if (row.kind != suffix.kind) continue;
      const auto numbers = match_name(row.*from_layer, layer);
      if (!numbers) continue;
      if (auto filled = fill_name(row.*to_layer, *numbers))
        return Translation{*filled + std::string(suffix.*to_suffix), row.kind};
    }
  }
  return {};
}

std::optional<Translation> to_ours(const Scheme& scheme, std::string_view name) {
  return translate(scheme, name, &LayerName::theirs, &LayerName::ours, &TensorSuffix::theirs,
                   &TensorSuffix::ours);
}

std::optional<Translation> from_ours(const Scheme& scheme, std::string_view name) {
  return translate(scheme, name, &LayerName::ours, &LayerName::theirs, &TensorSuffix::ours,
                   &TensorSuffix::theirs);
}

at::Tensor kernels_first(const at::Tensor& value) {
  if (value.dim() == 4) return value.permute({3, 2, 0, 1});
  return value.dim() == 2 ? value.t() : value;
}

at::Tensor kernels_last(const at::Tensor& value) {
  if (value.dim() == 4) return value.permute({2, 3, 1, 0});
  return value.dim() == 2 ? value.t() : value;
}

std::string without_wrappers(std::string_view name) {
  for (const std::string_view wrapper : {"module.", "model."})
    if (name.starts_with(wrapper)) name.remove_prefix(wrapper.size());
  return std::string(name);
}

const Scheme& scheme_of(const std::vector<std::string>& names) {
  const auto* best = &kSchemes.front();
  std::size_t most = 0;
  for (const auto& scheme : kSchemes) {
    std::size_t known = 0;
    for (const auto& name : names) {
      const auto ours = to_ours(scheme, name);
      known += ours && ours->name != name;  // names that both share say nothing
    }
    if (known > most) best = &scheme, most = known;
  }
  return *best;
}

/// Adds what norms of the backbone lack.
void complete_norms(std::vector<StoredTensor>& tensors) {
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < tensors.size(); ++i) places[tensors[i].name] = i;
  const auto count = tensors.size();
  for (std::size_t i = 0; i < count; ++i) {
    constexpr std::string_view kBias = ".bias";
    auto& name = tensors[i].name;
    if (!name.ends_with(kBias)) continue;
    const auto layer = name.substr(0, name.size() - kBias.size());
    for (const auto& [conv_name, norm_name] : kNormOfConv) {
      const auto of_conv = match_name(conv_name, layer);
      const auto numbers = of_conv ? of_conv : match_name(norm_name, layer);
      if (!numbers) continue;
      const auto norm_layer = *fill_name(norm_name, *numbers);
      if (of_conv) {
        if (places.contains(norm_layer + ".bias")) continue;  // a bias beside a norm: left alone
        name = norm_layer + ".bias";
      }
      const auto sides = tensors[i].value.sizes().vec();
      const auto imply = [&](const char* suffix, double value) {
        if (!places.contains(norm_layer + suffix))
          tensors.push_back({"", norm_layer + suffix, at::full(sides, value, at::kFloat)});
      };
      imply(".weight", 1);
      imply(".running_mean", 0);
      imply(".running_var", 1 - 1e-5);
      break;
    }
  }
}

}  // namespace

const std::vector<Scheme>& schemes() { return kSchemes; }

const Scheme& scheme_named(std::string_view name) {
  std::vector<std::string> names;
  for (const auto& scheme : kSchemes) {
    if (scheme.name == name) return scheme;
    names.emplace_back(scheme.name);
  }
  throw ConfigError("there are no names of '" + std::string(name) + "'" + suggestion(name, names));
}

TranslatedTensors in_our_names(const NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, value] : tensors) names.push_back(without_wrappers(name));
  TranslatedTensors result{&scheme_of(names), {}};
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (names[i].ends_with("num_batches_tracked")) continue;
    const auto& [stored_as, value] = tensors[i];
    const auto ours = to_ours(*result.scheme, names[i]);
    const bool turn = ours && result.scheme->kernels_last && ours->kind != norm;
    result.tensors.push_back(
        {stored_as, ours ? ours->name : names[i], turn ? kernels_first(value) : value});
  }
  if (result.scheme->folds_norms) complete_norms(result.tensors);
  return result;
}

NamedTensors in_names_of(const Scheme& scheme, const NamedTensors& ours,
                         std::vector<std::string>& unknown) {
  if (scheme.layers.empty()) return ours;
  NamedTensors result;
  for (const auto& [name, value] : ours) {
    const auto theirs = from_ours(scheme, name);
    const auto begins_name = [&](std::string_view start) { return name.starts_with(start); };
    if (!theirs && std::ranges::none_of(scheme.same_as_ours, begins_name)) unknown.push_back(name);
    const bool turn = theirs && scheme.kernels_last && theirs->kind != norm;
    result.emplace_back(theirs ? theirs->name : name, turn ? kernels_last(value) : value);
  }
  return result;
}

}  // namespace millrace
