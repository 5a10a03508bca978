#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "millrace/migration/mmdetection/model_parts.h"
#include "millrace/migration/mmdetection/readers.h"

namespace millrace::mmdetection {
namespace {

/// Files behind the names of weights that its recipes start from.
const std::map<std::string, std::string>& known_weights() {
  static const std::string torch = "https://download.pytorch.org/models/";
  static const std::string mm = "https://download.openmmlab.com/pretrain/third_party/";
  static const std::map<std::string, std::string> files = {
      {"torchvision://resnet18", torch + "resnet18-f37072fd.pth"},
      {"torchvision://resnet34", torch + "resnet34-b627a593.pth"},
      {"torchvision://resnet50", torch + "resnet50-0676ba61.pth"},
      {"torchvision://resnet101", torch + "resnet101-63fe2227.pth"},
      {"open-mmlab://detectron2/resnet50_caffe", mm + "resnet50_msra-5891d200.pth"},
      {"open-mmlab://detectron2/resnet101_caffe", mm + "resnet101_msra-6cc46731.pth"},
      {"open-mmlab://detectron/resnet50_caffe", mm + "resnet50_caffe-788b5fa3.pth"},
      {"open-mmlab://detectron/resnet101_caffe", mm + "resnet101_caffe-3ad79236.pth"},
      {"open-mmlab://detectron/resnet50_gn", mm + "resnet50_gn-9186a21c.pth"},
      {"open-mmlab://detectron/resnet101_gn", mm + "resnet101_gn-cac0ab98.pth"},
      {"open-mmlab://resnet50_v1c", mm + "resnet50_v1c-2cccc1ad.pth"},
      {"open-mmlab://resnet101_v1c", mm + "resnet101_v1c-e67eebb6.pth"},
  };
  return files;
}

/// Returns whether it is trained.
bool read_backbone_norm(Translation& t, const std::string& path) {
  const auto norm = t.read(path + ".norm_cfg");
  const auto type = text_or(t, path + ".norm_cfg.type", "BN");
  const bool trains = flag_or(t, path + ".norm_cfg.requires_grad", true);
  const bool keeps = flag_or(t, path + ".norm_eval", true);
  std::string ours;
  if (type == "BN" || type == "SyncBN")
    ours = keeps ? (trains ? "frozen_stats" : "frozen_bn") : type == "BN" ? "bn" : "sync_bn";
  else if (type == "GN")
    ours = "gn";
  else
    norm.fail("the norms here are BN, SyncBN and GN");
  const auto why = fmt::format("{}, requires_grad={}, norm_eval={}", type,
                               trains ? "True" : "False", keeps ? "True" : "False");
  if (norm)
    t.put("model.backbone.norm", words(ours), norm, why);
  else
    t.set("model.backbone.norm", words(ours), "MMDetection's default: " + why);
  return trains;
}

void read_weights(Translation& t, const std::string& backbone) {
  auto found = t.read(backbone + ".init_cfg.checkpoint");
  t.read(backbone + ".init_cfg.type"), t.read(backbone + ".init_cfg.prefix");
  if (const auto old = t.read("model.pretrained"); old && !found) found = old;
  if (const auto whole = t.read("load_from"))
    t.leave_out(whole,
                "the weights of a whole detector, by MMDetection's names, which nothing "
                "here reads: docs/migrating/mmdetection.md");
  if (!found) {
    t.set("model.backbone.zero_init_residual", Config::Data(true),
          "MMDetection's default for a network without weights");
    return;
  }
  auto name = found.text();
  std::string how;
  if (const auto known = known_weights().find(name); known != known_weights().end())
    how = known->second;
  else if (name.find("://") != std::string::npos)
    how = name;
  if (!how.empty()) name = weights_file(how);
  t.put("model.weights", words(name), found, how);
}

}  // namespace

bool read_backbone(Translation& t) {
  const std::string path = "model.backbone";
  const auto type = must(t, path + ".type", {"ResNet", "ResNetV1d"});
  const auto depth = t.read(path + ".depth");
  const std::vector<double> known = {18, 34, 50, 101};
  if (!depth || !std::ranges::count(known, depth.real()))
    (depth ? depth : t.look(path)).fail("the backbones here are ResNets of depth 18, 34, 50, 101");
  t.put("model.backbone.type", words(fmt::format("resnet{}", depth.integer())), depth);
  for (const auto* key : {"dcn", "plugins", "conv_cfg"})
    if (const auto found = t.read(path + "." + key)) found.fail("no backbone here has these");
  for (const auto* key : {"num_stages", "out_indices", "in_channels", "with_cp", "strides"})
    t.read(path + "." + key);
  t.expect(path + ".dilations", literal(Value::List(4, literal(std::int64_t{1}))),
           "no stage is dilated");
  if (type == "ResNetV1d") {
    t.put("model.backbone.deep_stem", Config::Data(true), t.look(path + ".type"));
    t.put("model.backbone.avg_down", Config::Data(true), t.look(path + ".type"));
  }
  t.copy(path + ".deep_stem", "model.backbone.deep_stem");
  t.copy(path + ".avg_down", "model.backbone.avg_down");
  t.copy(path + ".base_channels", "model.backbone.width");
  const auto frozen = t.read(path + ".frozen_stages");
  if (frozen)
    t.put("model.backbone.freeze_at", static_cast<double>(frozen.integer() + 1), frozen,
          "stages after the stem, which counts here");
  else
    t.set("model.backbone.freeze_at", Config::Data(std::int64_t{0}), "MMDetection's default");
  const bool trains_norms = read_backbone_norm(t, path);
  const auto style = t.read(path + ".style");
  const bool caffe = style && style.text() == "caffe";
  if (depth.integer() >= 50) {
    if (style)
      t.put("model.backbone.stride_in_1x1", Config::Data(caffe), style);
    else
      t.set("model.backbone.stride_in_1x1", Config::Data(false), "MMDetection's default");
  }
  read_weights(t, path);
  return trains_norms;
}

}  // namespace millrace::mmdetection
