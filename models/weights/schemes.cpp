#include "millrace/models/weights/schemes.h"

#include <ATen/ops/full.h>

#include <algorithm>
#include <array>
#include <map>

#include "millrace/base/errors.h"
#include "millrace/base/text.h"
#include "millrace/models/weights/name_pattern.h"

namespace millrace {
namespace {

using enum LayerKind;

/// The names of a layer here, in detectron2 and in tensorpack.
struct CommonLayer {
  LayerKind kind;
  std::string_view ours, detectron2, tensorpack;
};

constexpr std::string_view kBody = "backbone.body.";

constexpr CommonLayer kLayers[] = {
    {conv, "backbone.body.conv1", "backbone.bottom_up.stem.conv1", "conv0"},
    {norm, "backbone.body.bn1", "backbone.bottom_up.stem.conv1.norm", "conv0/bn"},
    {conv, "backbone.body.layer{a}.{b}.conv{c}", "backbone.bottom_up.res{a+1}.{b}.conv{c}",
     "group{a-1}/block{b}/conv{c}"},
    {norm, "backbone.body.layer{a}.{b}.bn{c}", "backbone.bottom_up.res{a+1}.{b}.conv{c}.norm",
     "group{a-1}/block{b}/conv{c}/bn"},
    {conv, "backbone.body.layer{a}.{b}.downsample.0", "backbone.bottom_up.res{a+1}.{b}.shortcut",
     "group{a-1}/block{b}/convshortcut"},
    {norm, "backbone.body.layer{a}.{b}.downsample.1",
     "backbone.bottom_up.res{a+1}.{b}.shortcut.norm", "group{a-1}/block{b}/convshortcut/bn"},
    {conv, "backbone.fpn.inner_blocks.{a}.0", "backbone.fpn_lateral{a+2}",
     "fpn/lateral_1x1_c{a+2}"},
    {norm, "backbone.fpn.inner_blocks.{a}.1", "backbone.fpn_lateral{a+2}.norm", "fpn/gn_c{a+2}"},
    {conv, "backbone.fpn.layer_blocks.{a}.0", "backbone.fpn_output{a+2}", "fpn/posthoc_3x3_p{a+2}"},
    {norm, "backbone.fpn.layer_blocks.{a}.1", "backbone.fpn_output{a+2}.norm", "fpn/gn_p{a+2}"},
    {conv, "rpn.head.conv.0.0", "proposal_generator.rpn_head.conv", "rpn/conv0"},
    {conv, "rpn.head.cls_logits", "proposal_generator.rpn_head.objectness_logits", "rpn/class"},
    {conv, "rpn.head.bbox_pred", "proposal_generator.rpn_head.anchor_deltas", "rpn/box"},
    {linear, "roi_heads.box_head.fc6", "roi_heads.box_head.fc1", "fastrcnn/fc6"},
    {linear, "roi_heads.box_head.fc7", "roi_heads.box_head.fc2", "fastrcnn/fc7"},
    {linear, "roi_heads.box_head.{a}.fc6", "roi_heads.box_head.{a}.fc1",
     "cascade_rcnn_stage{a+1}/head/fc6"},
    {linear, "roi_heads.box_head.{a}.fc7", "roi_heads.box_head.{a}.fc2",
     "cascade_rcnn_stage{a+1}/head/fc7"},
    {linear, "roi_heads.box_predictor.{a}.cls_score", "roi_heads.box_predictor.{a}.cls_score",
     "cascade_rcnn_stage{a+1}/outputs/class"},
    {linear, "roi_heads.box_predictor.{a}.bbox_pred", "roi_heads.box_predictor.{a}.bbox_pred",
     "cascade_rcnn_stage{a+1}/outputs/box"},
    {linear, "roi_heads.box_predictor.cls_score", "roi_heads.box_predictor.cls_score",
     "fastrcnn/outputs/class"},
    {linear, "roi_heads.box_predictor.bbox_pred", "roi_heads.box_predictor.bbox_pred",
     "fastrcnn/outputs/box"},
    {conv, "roi_heads.mask_head.{a}.0", "roi_heads.mask_head.mask_fcn{a+1}", "maskrcnn/fcn{a}"},
    {norm, "roi_heads.mask_head.{a}.1", "roi_heads.mask_head.mask_fcn{a+1}.norm", "maskrcnn/gn{a}"},
    {conv, "roi_heads.mask_predictor.conv5_mask", "roi_heads.mask_head.deconv", "maskrcnn/deconv"},
    {conv, "roi_heads.mask_predictor.mask_fcn_logits", "roi_heads.mask_head.predictor",
     "maskrcnn/conv"},
};

std::vector<NameRow> layers_of(std::string_view CommonLayer::*theirs) {
  std::vector<NameRow> rows;
  for (const auto& layer : kLayers)
    rows.push_back({layer.kind, std::string(layer.ours), std::string(layer.*theirs)});
  return rows;
}

/// Returns detectron2's names for heads on C4 (Res5ROIHeads): without "bottom_up", and with the
/// last stage among the region heads.
std::vector<NameRow> detectron2_c4_layers() {
  std::vector<NameRow> rows = {
      {conv, "backbone.body.layer4.{b}.conv{c}", "roi_heads.res5.{b}.conv{c}"},
      {norm, "backbone.body.layer4.{b}.bn{c}", "roi_heads.res5.{b}.conv{c}.norm"},
      {conv, "backbone.body.layer4.{b}.downsample.0", "roi_heads.res5.{b}.shortcut"},
      {norm, "backbone.body.layer4.{b}.downsample.1", "roi_heads.res5.{b}.shortcut.norm"}};
  for (auto& row : layers_of(&CommonLayer::detectron2)) {
    constexpr std::string_view kPyramidPart = "bottom_up.";
    if (const auto part = row.theirs.find(kPyramidPart); part != std::string::npos)
      row.theirs.erase(part, kPyramidPart.size());
    rows.push_back(std::move(row));
  }
  return rows;
}

/// Returns the names of torchvision's backbone with another prefix.
std::vector<NameRow> backbone_layers(const std::string& prefix) {
  std::vector<NameRow> rows;
  for (const auto& layer : kLayers)
    if (layer.ours.starts_with(kBody))
      rows.push_back({layer.kind, std::string(layer.ours),
                      prefix + std::string(layer.ours.substr(kBody.size()))});
  return rows;
}

std::vector<NameRow> mmdetection_layers() {
  auto rows = backbone_layers("backbone.");
  rows.insert(
      rows.end(),
      {{conv, "backbone.fpn.inner_blocks.{a}.0", "neck.lateral_convs.{a}.conv"},
       {norm, "backbone.fpn.inner_blocks.{a}.1", "neck.lateral_convs.{a}.gn"},
       {conv, "backbone.fpn.layer_blocks.{a}.0", "neck.fpn_convs.{a}.conv"},
       {norm, "backbone.fpn.layer_blocks.{a}.1", "neck.fpn_convs.{a}.gn"},
       {conv, "backbone.fpn.reduction.0", "neck.reduction_conv.conv"},
       {conv, "rpn.head.conv.0.0", "rpn_head.rpn_conv"},
       {conv, "rpn.head.cls_logits", "rpn_head.rpn_cls"},
       {conv, "rpn.head.bbox_pred", "rpn_head.rpn_reg"},
       {linear, "roi_heads.box_head.fc6", "roi_head.bbox_head.shared_fcs.0"},
       {linear, "roi_heads.box_head.fc7", "roi_head.bbox_head.shared_fcs.1"},
       {linear, "roi_heads.box_head.{a}.fc6", "roi_head.bbox_head.{a}.shared_fcs.0"},
       {linear, "roi_heads.box_head.{a}.fc7", "roi_head.bbox_head.{a}.shared_fcs.1"},
       {linear, "roi_heads.box_predictor.{a}.cls_score", "roi_head.bbox_head.{a}.fc_cls"},
       {linear, "roi_heads.box_predictor.{a}.bbox_pred", "roi_head.bbox_head.{a}.fc_reg"},
       {linear, "roi_heads.box_predictor.cls_score", "roi_head.bbox_head.fc_cls"},
       {linear, "roi_heads.box_predictor.bbox_pred", "roi_head.bbox_head.fc_reg"},
       {conv, "roi_heads.mask_head.{a}.0", "roi_head.mask_head.convs.{a}.conv"},
       {norm, "roi_heads.mask_head.{a}.1", "roi_head.mask_head.convs.{a}.gn"},
       {conv, "roi_heads.mask_predictor.conv5_mask", "roi_head.mask_head.upsample"},
       {conv, "roi_heads.mask_predictor.mask_fcn_logits", "roi_head.mask_head.conv_logits"}});
  return rows;
}

std::vector<NameRow> caffe2_layers(const std::string& first_norm) {
  return {{conv, "backbone.body.conv1", "conv1"},
          {norm, "backbone.body.bn1", first_norm},
          {conv, "backbone.body.layer{a}.{b}.conv1", "res{a+1}_{b}_branch2a"},
          {norm, "backbone.body.layer{a}.{b}.bn1", "res{a+1}_{b}_branch2a"},
          {conv, "backbone.body.layer{a}.{b}.conv2", "res{a+1}_{b}_branch2b"},
          {norm, "backbone.body.layer{a}.{b}.bn2", "res{a+1}_{b}_branch2b"},
          {conv, "backbone.body.layer{a}.{b}.conv3", "res{a+1}_{b}_branch2c"},
          {norm, "backbone.body.layer{a}.{b}.bn3", "res{a+1}_{b}_branch2c"},
          {conv, "backbone.body.layer{a}.{b}.downsample.0", "res{a+1}_{b}_branch1"},
          {norm, "backbone.body.layer{a}.{b}.downsample.1", "res{a+1}_{b}_branch1"}};
}

/// Returns their suffixes of weight and bias, then of a norm's weight, bias, mean and variance
/// (empty = none).
std::vector<NameRow> suffixes(const std::array<std::string, 6>& theirs) {
  std::vector<NameRow> rows = {
      {conv, ".weight", theirs[0]},       {conv, ".bias", theirs[1]},
      {norm, ".weight", theirs[2]},       {norm, ".bias", theirs[3]},
      {norm, ".running_mean", theirs[4]}, {norm, ".running_var", theirs[5]},
      {linear, ".weight", theirs[0]},     {linear, ".bias", theirs[1]}};
  std::erase_if(rows, [](const NameRow& row) { return row.theirs.empty(); });
  return rows;
}

std::vector<NameRow> torch_suffixes() {
  return suffixes({".weight", ".bias", ".weight", ".bias", ".running_mean", ".running_var"});
}

const std::vector<Scheme> kSchemes = {
    {.name = "torchvision",
     .doc = "torchvision 0.13 and later; our own names",
     .background = Background::first,
     .background_has_mask = true},
    {.name = "torchvision-2019",
     .doc = "torchvision until 0.12, and its published files of 2019",
     .layers = {{conv, "backbone.fpn.inner_blocks.{a}.0", "backbone.fpn.inner_blocks.{a}"},
                {conv, "backbone.fpn.layer_blocks.{a}.0", "backbone.fpn.layer_blocks.{a}"},
                {conv, "rpn.head.conv.0.0", "rpn.head.conv"},
                {conv, "roi_heads.mask_head.{a}.0", "roi_heads.mask_head.mask_fcn{a+1}"}},
     .suffixes = torch_suffixes(),
     .same_as_ours = {kBody, "rpn.head.cls_logits.", "rpn.head.bbox_pred.", "roi_heads.box_head.fc",
                      "roi_heads.box_predictor.", "roi_heads.mask_predictor."},
     .background = Background::first,
     .background_has_mask = true},
    {.name = "detectron2",
     .doc = "detectron2: class axes with the background last",
     .layers = layers_of(&CommonLayer::detectron2),
     .suffixes = torch_suffixes(),
     .background = Background::last},
    {.name = "detectron2-c4",
     .doc = "detectron2's R-CNNs on C4 (backbone.out = \"c4\"): the background comes last",
     .layers = detectron2_c4_layers(),
     .suffixes = torch_suffixes(),
     .background = Background::last},
    {.name = "mmdetection",
     .doc = "MMDetection: class axes with the background last",
     .layers = mmdetection_layers(),
     .suffixes = torch_suffixes(),
     .trunk = "backbone.",
     .background = Background::last},
    {.name = "tensorpack",
     .doc = "tensorpack and aws-samples/mask-rcnn-tensorflow: TensorFlow's layouts",
     .layers = layers_of(&CommonLayer::tensorpack),
     .suffixes = suffixes({"/W", "/b", "/gamma", "/beta", "/mean/EMA", "/variance/EMA"}),
     .kernels_last = true,
     .folds_norms = true,
     .background = Background::first},
    {.name = "resnet",
     .doc = "classifiers of torchvision (resnet50-*.pth) and timm (hrnet_w18): the backbone alone",
     .layers = backbone_layers(""),
     .suffixes = torch_suffixes(),
     .trunk = ""},
    {.name = "caffe2",
     .doc = "the ImageNet networks of detectron2's model zoo (MSRA/R-50.pkl): the backbone alone",
     .layers = caffe2_layers("res_conv1"),
     .suffixes = suffixes({"_w", "_b", "_bn_s", "_bn_b", "_bn_rm", "_bn_riv"}),
     .folds_norms = true},
    {.name = "caffe2-gn",
     .doc = "the same with group norm (FAIR/R-50-GN.pkl)",
     .layers = caffe2_layers("conv1"),
     .suffixes = suffixes({"_w", "_b", "_gn_s", "_gn_b", "", ""})},
};

/// Our names of a backbone's convolution and of its norm.
constexpr std::pair<std::string_view, std::string_view> kNormOfConv[] = {
    {"backbone.body.conv1", "backbone.body.bn1"},
    {"backbone.body.layer{a}.{b}.conv{c}", "backbone.body.layer{a}.{b}.bn{c}"},
    {"backbone.body.layer{a}.{b}.downsample.0", "backbone.body.layer{a}.{b}.downsample.1"},
};

struct Translation {
  std::string name;
  LayerKind kind;
};

/// Translates a name from the column `from` of a scheme's tables to the column `to`.
std::optional<Translation> translate(const Scheme& scheme, std::string_view name,
                                     std::string NameRow::*from, std::string NameRow::*to) {
  for (const auto& suffix : scheme.suffixes) {
    if (!name.ends_with(suffix.*from)) continue;
    const auto layer = name.substr(0, name.size() - (suffix.*from).size());
    for (const auto& row : scheme.layers) {
      if (row.kind != suffix.kind) continue;
      const auto numbers = match_name(row.*from, layer);
      if (!numbers) continue;
      if (auto filled = fill_name(row.*to, *numbers))
        return Translation{*filled + suffix.*to, row.kind};
    }
  }
  return {};
}

std::optional<Translation> row_to_ours(const Scheme& scheme, std::string_view name) {
  return translate(scheme, name, &NameRow::theirs, &NameRow::ours);
}

/// Returns true if the name belongs to a classifier's head.
bool is_of_classifier(std::string_view name) {
  constexpr std::string_view kClassifiers[] = {"fc.", "classifier.", "head."};
  return std::ranges::any_of(kClassifiers,
                             [&](const auto& head) { return name.starts_with(head); });
}

std::optional<Translation> to_ours(const Scheme& scheme, std::string_view name) {
  const auto found = row_to_ours(scheme, name);
  if (found || !scheme.trunk || !name.starts_with(*scheme.trunk) || is_of_classifier(name))
    return found;
  return Translation{std::string(kBody) + std::string(name.substr(scheme.trunk->size())), conv};
}

std::optional<Translation> to_theirs(const Scheme& scheme, std::string_view name) {
  const auto found = translate(scheme, name, &NameRow::ours, &NameRow::theirs);
  if (found || !scheme.trunk || !name.starts_with(kBody)) return found;
  return Translation{std::string(*scheme.trunk) + std::string(name.substr(kBody.size())), conv};
}

/// Permutes the sides of a kernel of a convolution, and transposes that of a linear layer.
at::Tensor turned(const at::Tensor& value, at::IntArrayRef sides) {
  if (value.dim() == 4) return value.permute(sides);
  return value.dim() == 2 ? value.t() : value;
}

std::string without_wrappers(std::string_view name) {
  while (strip_wrapper(name)) continue;
  return std::string(name);
}

/// Returns true if it is a name of our own detectors.
bool is_ours(std::string_view name) {
  constexpr std::string_view kParts[] = {kBody,
                                         "backbone.fpn.",
                                         "rpn.head.",
                                         "roi_heads.",
                                         "head.classification_head.",
                                         "head.regression_head."};
  return std::ranges::any_of(kParts, [&](auto part) { return name.starts_with(part); });
}

const Scheme& scheme_of(const std::vector<std::string>& names) {
  const auto* best = &kSchemes.front();
  std::size_t most = 0;
  for (const auto& scheme : kSchemes) {
    std::size_t known = 0;
    for (const auto& name : names) {
      const auto ours = row_to_ours(scheme, name);
      known += ours && ours->name != name;  // names that both share do not distinguish
    }
    if (known > most) best = &scheme, most = known;
  }
  return *best;
}

/// Adds the tensors that the backbone's norms lack.
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
        if (places.contains(norm_layer + ".bias")) continue;  // a bias beside a norm is kept
        tensors[i].without_norm = name;
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

std::vector<std::string> scheme_names() {
  std::vector<std::string> names;
  for (const auto& scheme : kSchemes) names.emplace_back(scheme.name);
  return names;
}

const Scheme& scheme_named(std::string_view name) {
  for (const auto& scheme : kSchemes)
    if (scheme.name == name) return scheme;
  throw ConfigError("unknown naming scheme '" + std::string(name) + "'" +
                    suggestion(name, scheme_names()));
}

bool strip_wrapper(std::string_view& name) {
  for (const std::string_view wrapper : {"module.", "_orig_mod.", "model."})
    if (name.starts_with(wrapper)) {
      name.remove_prefix(wrapper.size());
      return true;
    }
  return false;
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
    result.known += ours || is_ours(names[i]);
    result.tensors.push_back(
        {stored_as, ours ? ours->name : names[i], turn ? turned(value, {3, 2, 0, 1}) : value});
  }
  if (result.scheme->folds_norms) complete_norms(result.tensors);
  return result;
}

NamedTensors in_names_of(const Scheme& scheme, const NamedTensors& ours,
                         std::vector<std::string>& unknown) {
  if (scheme.layers.empty()) return ours;
  NamedTensors result;
  for (const auto& [name, value] : ours) {
    const auto theirs = to_theirs(scheme, name);
    const auto begins_name = [&](std::string_view start) { return name.starts_with(start); };
    if (!theirs && std::ranges::none_of(scheme.same_as_ours, begins_name)) unknown.push_back(name);
    const bool turn = theirs && scheme.kernels_last && theirs->kind != norm;
    result.emplace_back(theirs ? theirs->name : name, turn ? turned(value, {2, 3, 1, 0}) : value);
  }
  return result;
}

}  // namespace millrace
