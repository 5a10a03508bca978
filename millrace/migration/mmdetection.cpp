// Recipes of MMDetection (https://github.com/open-mmlab/mmdetection), 2.x and 3.x.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "millrace/base/errors.h"
#include "millrace/base/text.h"
#include "millrace/migration/files/foreign_config.h"
#include "millrace/migration/mmdetection.h"
#include "millrace/migration/mmdetection_pipeline.h"
#include "millrace/migration/translation/anchors_of.h"
#include "millrace/migration/translation/epoch_length.h"

namespace millrace {
namespace {

constexpr std::int64_t kUsualGpus = 8;  // that MMDetection's recipes are for

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

/// The rules: what each of its keys is here.
class MmRules {
 public:
  MmRules(const ForeignConfig& config, const ImportOptions& options)
      : config_(config), options_(options), t_(config.tree) {}

  ImportedConfig all() {
    if (!t_.look("model"))
      throw ConfigError(config_.tree.place.text() + ": no `model = dict(...)`: no recipe");
    is_new_ = static_cast<bool>(t_.look("train_dataloader"));
    train_ = t_.look("model.train_cfg") ? "model.train_cfg" : "train_cfg";
    test_ = t_.look("model.test_cfg") ? "model.test_cfg" : "test_cfg";
    read_model();
    read_data();
    read_optimizer();
    read_schedule();
    read_run();
    note_rest();
    return {"MMDetection", std::move(t_.ours()), t_.left_out()};
  }

 private:
  // ---- Small readers

  /// A string that must be one of these, else the model is none of ours.
  std::string must(const std::string& path, const std::vector<std::string>& possible) {
    const auto found = t_.read(path);
    if (!found)
      throw ConfigError(fmt::format("{}: `{}` is missing", config_.tree.place.text(), path));
    const auto given = found.text();
    if (!std::ranges::count(possible, given))
      found.fail(fmt::format("no model here is made so; what can be imported: {}",
                             joined(possible, ", ")));
    return given;
  }

  double real_or(const std::string& path, double otherwise) {
    const auto found = t_.read(path);
    return found ? found.real() : otherwise;
  }
  bool flag_or(const std::string& path, bool otherwise) {
    const auto found = t_.read(path);
    return found ? found.flag() : otherwise;
  }
  std::string text_or(const std::string& path, const std::string& otherwise) {
    const auto found = t_.read(path);
    return found ? found.text() : otherwise;
  }

  // ---- The model

  void read_model() {
    const auto type = must("model.type", {"FasterRCNN", "MaskRCNN", "CascadeRCNN", "RetinaNet"});
    const auto found = t_.look("model.type");
    const bool masks = t_.look("model.roi_head.mask_head") && type != "FasterRCNN";
    if (type == "RetinaNet") {
      t_.put("model.type", words("retinanet"), found);
    } else if (type == "CascadeRCNN") {
      t_.put("model.type", words("cascadercnn"), found);
      t_.put("model.masks", Config::Data(masks),
             masks ? t_.look("model.roi_head.mask_head") : found);
    } else {
      t_.put("model.type", words(masks ? "maskrcnn" : "fasterrcnn"), found);
    }
    read_pixels("model.data_preprocessor", "bgr_to_rgb");
    read_backbone();
    read_neck(type == "RetinaNet");
    if (type == "RetinaNet") {
      read_retina_head();
      return;
    }
    t_.set("model.roi.level_eps", Config::Data(2.5e-7),
           "as MMDetection's 1e-6, whose regions of 56 "
           "pixels go to P2");
    read_rpn();
    read_roi_head(type == "CascadeRCNN", masks);
  }

  /// mean, std and order of channels: of the preprocessor (3.x) or of `Normalize` (2.x).
  void read_pixels(const std::string& path, const std::string& order) {
    if (!t_.look(path)) return;
    t_.copy(path + ".mean", "model.pixel_mean");
    t_.copy(path + ".std", "model.pixel_std");
    if (const auto rgb = t_.read(path + "." + order))
      t_.put("model.pixel_order", words(rgb.flag() ? "rgb" : "bgr"), rgb);
    else
      t_.put("model.pixel_order", words("bgr"), t_.look(path),
             "no " + order + ": as files are read");
    t_.copy(path + ".pad_size_divisor", "data.divisor");
    t_.read(path + ".type"), t_.read(path + ".pad_mask"), t_.read(path + ".pad_value");
    t_.leave_out_rest(path + ".batch_augments",
                      "a fixed size of batches is data.pad_shapes = [\"1024x1024\"]");
  }

  void read_backbone() {
    const std::string path = "model.backbone";
    const auto type = must(path + ".type", {"ResNet", "ResNetV1d"});
    const auto depth = t_.read(path + ".depth");
    const std::vector<double> known = {18, 34, 50, 101};
    if (!depth || !std::ranges::count(known, depth.real()))
      (depth ? depth : t_.look(path))
          .fail("the backbones here are ResNets of depth 18, 34, 50, 101");
    t_.put("model.backbone.type", words(fmt::format("resnet{}", depth.integer())), depth);
    for (const auto* key : {"dcn", "plugins", "conv_cfg"})
      if (const auto found = t_.read(path + "." + key)) found.fail("no backbone here has these");
    for (const auto* key : {"num_stages", "out_indices", "in_channels", "with_cp", "strides"})
      t_.read(path + "." + key);
    t_.expect(path + ".dilations", literal(Value::List(4, literal(std::int64_t{1}))),
              "no stage is dilated");
    if (type == "ResNetV1d") {
      t_.put("model.backbone.deep_stem", Config::Data(true), t_.look(path + ".type"));
      t_.put("model.backbone.avg_down", Config::Data(true), t_.look(path + ".type"));
    }
    t_.copy(path + ".deep_stem", "model.backbone.deep_stem");
    t_.copy(path + ".avg_down", "model.backbone.avg_down");
    t_.copy(path + ".base_channels", "model.backbone.width");
    const auto frozen = t_.read(path + ".frozen_stages");
    if (frozen)
      t_.put("model.backbone.freeze_at", static_cast<double>(frozen.integer() + 1), frozen,
             "stages after the stem, which counts here");
    else
      t_.set("model.backbone.freeze_at", Config::Data(std::int64_t{0}), "MMDetection's default");
    read_backbone_norm(path);
    const auto style = t_.read(path + ".style");
    const bool caffe = style && style.text() == "caffe";
    if (depth.integer() >= 50) {
      if (style)
        t_.put("model.backbone.stride_in_1x1", Config::Data(caffe), style);
      else
        t_.set("model.backbone.stride_in_1x1", Config::Data(false), "MMDetection's default");
    }
    read_weights(path);
  }

  void read_backbone_norm(const std::string& path) {
    const auto norm = t_.read(path + ".norm_cfg");
    const auto type = text_or(path + ".norm_cfg.type", "BN");
    const bool trains = flag_or(path + ".norm_cfg.requires_grad", true);
    const bool keeps = flag_or(path + ".norm_eval", true);
    std::string ours;
    if (type == "BN" || type == "SyncBN")
      ours = keeps ? (trains ? "frozen_stats" : "frozen_bn") : type == "BN" ? "bn" : "sync_bn";
    else if (type == "GN")
      ours = "gn";
    else
      norm.fail("the norms here are BN, SyncBN and GN");
    trains_norms_ = trains_norms_ || trains;
    const auto why = fmt::format("{}, requires_grad={}, norm_eval={}", type,
                                 trains ? "True" : "False", keeps ? "True" : "False");
    if (norm)
      t_.put("model.backbone.norm", words(ours), norm, why);
    else
      t_.set("model.backbone.norm", words(ours), "MMDetection's default: " + why);
  }

  void read_weights(const std::string& backbone) {
    auto found = t_.read(backbone + ".init_cfg.checkpoint");
    t_.read(backbone + ".init_cfg.type"), t_.read(backbone + ".init_cfg.prefix");
    if (const auto old = t_.read("model.pretrained"); old && !found) found = old;
    if (const auto whole = t_.read("load_from"))
      t_.leave_out(whole,
                   "the weights of a whole detector, by MMDetection's names, which nothing "
                   "here reads: docs/migrating/mmdetection.md");
    if (!found) {
      t_.set("model.backbone.zero_init_residual", Config::Data(true),
             "MMDetection's default for a network without weights");
      return;
    }
    auto name = found.text();
    std::string how;
    if (const auto known = known_weights().find(name); known != known_weights().end())
      how = known->second;
    else if (name.find("://") != std::string::npos)
      how = name;
    if (!how.empty()) name = "data/weights/" + how.substr(how.rfind('/') + 1);
    t_.put("model.weights", words(name), found, how);
  }

  /// The norm of a part that is "none" without norm_cfg.
  std::string norm_of(const std::string& path) {
    const auto norm = t_.read(path + ".norm_cfg");
    if (!norm) return "none";
    const auto type = text_or(path + ".norm_cfg.type", "");
    trains_norms_ = true;
    if (type == "GN") return "gn";
    if (type == "BN") return "bn";
    if (type == "SyncBN") return "sync_bn";
    norm.fail("the norms here are GN, BN and SyncBN");
  }

  void read_neck(bool retina) {
    const std::string path = "model.neck";
    if (!t_.look(path))
      throw ConfigError(t_.look("model").where() +
                        ": no neck: the models here have a feature pyramid (FPN)");
    must(path + ".type", {"FPN"});
    t_.read(path + ".in_channels"), t_.read(path + ".start_level");
    t_.copy(path + ".out_channels", "model.fpn.out_channels");
    t_.expect(path + ".num_outs", literal(std::int64_t{5}), "the pyramid has five levels");
    if (const auto found = t_.read(path + ".conv_cfg")) found.fail("plain convolutions only");
    t_.put("model.fpn.norm", words(norm_of(path)), t_.look(path));
    const auto extra = t_.read(path + ".add_extra_convs");
    if (!retina) {
      if (extra) t_.leave_out(extra, "P6 of a two-stage detector is pooled from P5");
      return;
    }
    if (extra && extra.need().type_name() == "a string" && extra.text() == "on_output")
      t_.put("model.fpn.p6_from", words("p5"), extra);
    else if (extra && extra.need().type_name() == "a string" && extra.text() == "on_lateral")
      t_.leave_out(extra, "P6 is made from C5 or P5: model.fpn.p6_from");
    t_.expect(path + ".relu_before_extra_convs", literal(true), "P7 is made from ReLU(P6)");
  }

  void read_anchors(const std::string& head) {
    const auto path = head + ".anchor_generator";
    must(path + ".type", {"AnchorGenerator"});
    const auto strides = t_.read(path + ".strides");
    const auto scales = t_.read(path + ".scales");
    const auto base = t_.read(path + ".octave_base_scale");
    const auto octaves = t_.read(path + ".scales_per_octave");
    if (!strides || (!scales && !(base && octaves)))
      t_.look(head).fail("anchor_generator needs strides and scales");
    std::vector<double> factors;
    if (scales) factors = scales.reals();
    for (std::int64_t i = 0; !scales && i < octaves.integer() && i < 16; ++i)
      factors.push_back(base.real() *
                        std::exp2(static_cast<double>(i) / static_cast<double>(octaves.integer())));
    std::vector<std::vector<double>> levels;
    for (const double stride : strides.reals()) {
      auto& level = levels.emplace_back(factors);
      for (auto& one : level) one *= stride;
    }
    put_anchor_sizes(t_, levels, scales ? scales : base, "times the strides");
    if (factors.size() > 1)
      t_.set("model.anchors.order", words("ratio"), "as MMDetection's AnchorGenerator counts them");
    t_.copy(path + ".ratios", "model.anchors.aspect_ratios");
    t_.expect(path + ".center_offset", literal(0.0), "anchors stand at the corners of cells");
    t_.expect(path + ".scale_major", literal(true), "anchors go by ratio and then by scale");
    if (const auto sizes = t_.read(path + ".base_sizes"))
      t_.leave_out(sizes, "sizes are scales times strides");
  }

  /// A bbox_coder's weights, one over its deviations.
  std::vector<double> coder(const std::string& head) {
    const auto path = head + ".bbox_coder";
    t_.expect(path + ".type", literal(std::string("DeltaXYWHBBoxCoder")), "boxes are dx dy dw dh");
    t_.expect(path + ".target_means", literal(Value::List(4, literal(0.0))), "the means are 0");
    t_.expect(path + ".clip_border", literal(true), "boxes are cut at the image's border");
    const auto deviations = t_.read(path + ".target_stds");
    if (!deviations) return {1, 1, 1, 1};
    std::vector<double> weights;
    for (const double one : deviations.reals()) {
      if (one <= 0) deviations.fail("deviations are above 0");
      const double weight = 1 / one;  // 1 / 0.1 is 10
      weights.push_back(std::abs(weight - std::round(weight)) < 1e-9 ? std::round(weight) : weight);
    }
    return weights;
  }

  /// `loss_bbox`: sets smooth_l1_beta, or giou where `giou` allows it.
  void read_box_loss(const std::string& head, const std::string& table, bool giou) {
    const auto path = head + ".loss_bbox";
    const auto type = t_.read(path + ".type");
    if (!type) return;
    t_.expect(path + ".loss_weight", literal(1.0), kNoMmWeights);
    const auto beta = t_.read(path + ".beta");
    if (type.text() == "L1Loss")
      t_.put(table + ".smooth_l1_beta", 0.0, type);
    else if (type.text() == "SmoothL1Loss" && beta)
      t_.put(table + ".smooth_l1_beta", beta.real(), beta);
    else if (type.text() == "SmoothL1Loss")
      t_.put(table + ".smooth_l1_beta", 1.0, type, "its default");
    else if (type.text() == "GIoULoss" && giou)
      t_.put(table + ".bbox_reg_loss_type", words("giou"), type);
    else
      t_.leave_out(type, giou ? "boxes are learned with (smooth) L1 or GIoU"
                              : "proposals are learned with (smooth) L1");
    t_.leave_out_rest(path, "without a counterpart in the losses of boxes");
  }

  void read_rpn() {
    const std::string path = "model.rpn_head";
    must(path + ".type", {"RPNHead"});
    t_.read(path + ".in_channels");
    t_.expect(path + ".feat_channels", t_.look("model.neck.out_channels").need(),
              "its convolution has as many channels as the pyramid");
    t_.expect(path + ".num_convs", literal(std::int64_t{1}), "one convolution");
    read_anchors(path);
    if (coder(path) != std::vector<double>{1, 1, 1, 1})
      t_.leave_out(t_.look(path + ".bbox_coder.target_stds"), "deltas of proposals are not scaled");
    t_.expect(path + ".loss_cls.type", literal(std::string("CrossEntropyLoss")),
              "objectness is learned with binary cross-entropy");
    t_.expect(path + ".loss_cls.use_sigmoid", literal(true), "one score per anchor");
    t_.expect(path + ".loss_cls.loss_weight", literal(1.0), kNoMmWeights);
    read_box_loss(path, "model.rpn", /*giou=*/false);
    t_.set("model.rpn.loss_normalizer", words("sampled"),
           "as MMDetection divides the RPN's losses");
    read_assigner(train_ + ".rpn", "model.rpn.bg_iou_thresh", "model.rpn.fg_iou_thresh", 0.3);
    read_sampler(train_ + ".rpn", "model.rpn");
    t_.copy(train_ + ".rpn.allowed_border", "model.rpn.boundary_thresh");
    note_debug(train_ + ".rpn");
    read_proposals(train_ + ".rpn_proposal", "train");
    read_proposals(test_ + ".rpn", "test");
  }

  void note_debug(const std::string& path) {
    t_.read(path + ".debug");
    t_.expect(path + ".pos_weight", literal(std::int64_t{-1}), kNoMmWeights);
  }

  void read_assigner(const std::string& above, const std::string& background,
                     const std::string& foreground, double least) {
    const auto path = above + ".assigner";
    t_.expect(path + ".type", literal(std::string("MaxIoUAssigner")), "boxes are matched by IoU");
    const auto low = t_.read(path + ".neg_iou_thr"), high = t_.read(path + ".pos_iou_thr");
    if (high) t_.put(foreground, high.real(), high);
    if (low && !background.empty()) t_.put(background, low.real(), low);
    if (low && high && background.empty() && low.real() != high.real())
      t_.leave_out(low, "regions are foreground or background: one threshold");
    const auto floor = t_.read(path + ".min_pos_iou");
    if (floor && least > 0 && !background.empty())
      t_.leave_out(floor,
                   "each object's best anchor is foreground, however small its IoU, as in "
                   "detectron2");
    const auto poor = t_.read(path + ".match_low_quality");
    if (poor && background.empty() && poor.flag())
      t_.leave_out(poor, "a region belongs to the object that it overlaps most");
    t_.expect(path + ".ignore_iof_thr", literal(std::int64_t{-1}), "crowds are not trained on");
    t_.read(path + ".gpu_assign_thr"), t_.read(path + ".iou_calculator");
  }

  void read_sampler(const std::string& above, const std::string& table) {
    const auto path = above + ".sampler";
    t_.expect(path + ".type", literal(std::string("RandomSampler")), "samples are drawn at random");
    t_.copy(path + ".num", table + ".batch_size_per_image");
    t_.copy(path + ".pos_fraction", table + ".positive_fraction");
    t_.expect(path + ".neg_pos_ub", literal(std::int64_t{-1}), "background fills what is left");
    t_.expect(path + ".add_gt_as_proposals", literal(table == "model.roi"),
              "ground truth is among the regions, not among the anchors");
  }

  void read_proposals(const std::string& path, const std::string& when) {
    if (const auto found = t_.read(path + ".nms_pre"))
      t_.put("model.rpn.pre_nms_top_n_" + when, found.real(), found);
    if (const auto found =
            t_.read_any({path + ".max_per_img", path + ".max_num", path + ".nms_post"}))
      t_.put("model.rpn.post_nms_top_n_" + when, found.real(), found);
    const auto nms = t_.read_any({path + ".nms.iou_threshold", path + ".nms_thr"});
    t_.expect(path + ".nms.type", literal(std::string("nms")), "proposals go through hard NMS");
    t_.read(path + ".nms_post"), t_.read(path + ".nms_across_levels");
    if (nms && when == "train") t_.put("model.rpn.nms_thresh", nms.real(), nms);
    if (nms && when == "test") {
      const auto* set = t_.ours().find_path("model.rpn.nms_thresh");
      if (!set || value_text(*set) != value_text({number(nms.real()), {}}))
        t_.leave_out(nms, "one threshold in training and detection: model.rpn.nms_thresh");
    }
    if (const auto side = t_.read(path + ".min_bbox_size")) {
      if (when == "test") t_.put("model.rpn.min_size", side.real(), side);
    }
  }

  void read_roi_head(bool cascade, bool masks) {
    const std::string path = "model.roi_head";
    must(path + ".type", {cascade ? "CascadeRoIHead" : "StandardRoIHead"});
    const bool list = t_.look(path + ".bbox_head") && t_.look(path + ".bbox_head").need().is_list();
    const auto stages = list ? t_.look(path + ".bbox_head").need().list().size() : std::size_t{1};
    if (cascade != list || stages == 0)
      t_.look(path).fail(cascade ? "a cascade's bbox_head is a list of its stages"
                                 : "bbox_head is one head");
    const auto head = [&](std::size_t i) {
      return path + (list ? fmt::format(".bbox_head.{}", i) : ".bbox_head");
    };
    std::vector<double> weights;
    for (std::size_t i = 0; i < stages; ++i) {
      const auto more = coder(head(i));
      weights.insert(weights.end(), more.begin(), more.end());
      read_box_head(head(i), i);
    }
    const auto deviations = t_.look(head(0) + ".bbox_coder.target_stds");
    if (deviations)
      t_.put("model.box.bbox_reg_weights", weights, deviations, "1 / target_stds of each stage");
    if (cascade) {
      t_.read(path + ".num_stages");
      t_.expect(path + ".stage_loss_weights", literal(Value::List(stages, literal(1.0))),
                "the losses of all stages count the same, as in detectron2");
    }
    read_pooler(path + ".bbox_roi_extractor", "model.box.pooler_resolution", true);
    if (masks) {
      read_pooler(path + ".mask_roi_extractor", "model.mask.pooler_resolution", false);
      read_mask_head(path + ".mask_head");
    }
    read_region_training(cascade, stages);
    read_detections(test_ + ".rcnn");
    t_.expect(test_ + ".rcnn.mask_thr_binary", literal(0.5), "a mask's border is at 0.5");
  }

  void read_box_head(const std::string& path, std::size_t stage) {
    const auto type = must(path + ".type", {"Shared2FCBBoxHead", "Shared4Conv1FCBBoxHead"});
    for (const auto* key : {"in_channels", "roi_feat_size", "num_classes"})
      t_.read(path + "." + key);
    t_.expect(path + ".loss_cls.type", literal(std::string("CrossEntropyLoss")),
              "classes are learned with softmax");
    t_.expect(path + ".loss_cls.use_sigmoid", literal(false), "classes are learned with softmax");
    t_.expect(path + ".loss_cls.loss_weight", literal(1.0), kNoMmWeights);
    t_.read(path + ".reg_decoded_bbox");  // goes with its loss
    if (stage > 0) {                      // all stages are alike: the first decides
      for (const auto* key : {"type", "fc_out_channels", "reg_class_agnostic", "loss_bbox",
                              "conv_out_channels", "norm_cfg"}) {
        const auto first = t_.look("model.roi_head.bbox_head.0." + std::string(key));
        const auto one = t_.read(path + "." + key);
        if (static_cast<bool>(first) != static_cast<bool>(one) ||
            (one && !same(*first.value, *one.value)))
          (one ? one : first).fail("the stages of a cascade have the same head");
      }
      return;
    }
    const bool plain = type == "Shared2FCBBoxHead";
    t_.put("model.box.type", words(plain ? "2fc" : "4conv1fc"), t_.look(path + ".type"));
    t_.copy(path + ".fc_out_channels", "model.box.fc_dim");
    t_.copy(path + ".reg_class_agnostic", "model.box.cls_agnostic_bbox_reg");
    if (!plain) {
      t_.put("model.box.norm", words(norm_of(path)), t_.look(path));
      t_.expect(path + ".conv_out_channels", t_.look("model.neck.out_channels").need(),
                "its convolutions have as many channels as the pyramid");
    }
    read_box_loss(path, "model.box", /*giou=*/true);
  }

  void read_pooler(const std::string& path, const std::string& resolution, bool first) {
    must(path + ".type", {"SingleRoIExtractor"});
    must(path + ".roi_layer.type", {"RoIAlign"});
    t_.read(path + ".out_channels"), t_.read(path + ".featmap_strides");
    if (const auto size =
            t_.read_any({path + ".roi_layer.output_size", path + ".roi_layer.out_size"}))
      t_.put(resolution, size.real(), size);
    const auto samples =
        t_.read_any({path + ".roi_layer.sampling_ratio", path + ".roi_layer.sample_num"});
    const auto aligned = t_.read(path + ".roi_layer.aligned");
    const auto scale = t_.read(path + ".finest_scale");
    if (first) {
      if (samples) t_.put("model.roi.sampling_ratio", samples.real(), samples);
      if (aligned) t_.put("model.roi.aligned", Config::Data(aligned.flag()), aligned);
      if (scale)
        t_.put("model.roi.canonical_box_size", 4 * scale.real(), scale, "the side that goes to P4");
      return;
    }
    for (const auto& [mine, key] : {std::pair{samples, "sampling_ratio"}, {aligned, "aligned"}})
      if (const auto other =
              t_.look(std::string("model.roi_head.bbox_roi_extractor.roi_layer.") + key);
          mine && (!other || !same(*mine.value, *other.value)))
        t_.leave_out(mine, "the mask head's regions are pooled as the box head's");
  }

  void read_mask_head(const std::string& path) {
    must(path + ".type", {"FCNMaskHead"});
    t_.copy(path + ".num_convs", "model.mask.num_convs");
    t_.copy(path + ".conv_out_channels", "model.mask.conv_dim");
    for (const auto* key : {"in_channels", "num_classes", "roi_feat_size"})
      t_.read(path + "." + key);
    t_.expect(path + ".class_agnostic", literal(false), "each class has a mask");
    if (t_.look("model.roi_head.bbox_head").need().is_list())
      t_.leave_out(
          t_.look(path + ".type"),
          "MMDetection trains a mask head for each stage; here one learns from the regions "
          "of the first, as in detectron2");
    t_.expect(path + ".loss_mask.type", literal(std::string("CrossEntropyLoss")),
              "masks are learned with binary cross-entropy");
    t_.expect(path + ".loss_mask.use_mask", literal(true),
              "masks are learned with binary cross-entropy");
    t_.expect(path + ".loss_mask.loss_weight", literal(1.0), kNoMmWeights);
    const auto norm = norm_of(path);
    if (const auto* pyramid = t_.ours().find_path("model.fpn.norm");
        pyramid && std::get<std::string>(pyramid->data) != norm)
      t_.leave_out(t_.look(path), fmt::format("its norm is '{}': here it has the pyramid's", norm));
    t_.set("model.mask.init_std", Config::Data(0.0), "He's, as FCNMaskHead's predictor starts");
  }

  void read_region_training(bool cascade, std::size_t stages) {
    std::vector<double> thresholds;
    for (std::size_t i = 0; i < stages; ++i) {
      const auto path = train_ + ".rcnn" + (cascade ? fmt::format(".{}", i) : "");
      const auto high = t_.look(path + ".assigner.pos_iou_thr");
      if (!high) t_.look("model.roi_head").fail(path + ".assigner.pos_iou_thr is missing");
      read_assigner(path, "", "model.roi.fg_iou_thresh", 0);
      thresholds.push_back(high.real());
      if (i == 0) {
        read_sampler(path, "model.roi");
      } else {
        const auto first = t_.look(train_ + ".rcnn.0.sampler"), one = t_.read(path + ".sampler");
        if (first && one && !same(*first.value, *one.value))
          one.fail("the stages of a cascade sample alike");
      }
      t_.expect(path + ".mask_size", literal(std::int64_t{28}),
                "masks have twice model.mask.pooler_resolution");
      note_debug(path);
    }
    if (cascade)
      t_.put("model.roi.fg_iou_thresh", thresholds, t_.look(train_ + ".rcnn"),
             "pos_iou_thr of each stage");
  }

  void read_detections(const std::string& path) {
    t_.copy(path + ".score_thr", "model.test.score_thresh");
    t_.copy(path + ".max_per_img", "model.test.detections_per_img");
    const auto type = t_.read(path + ".nms.type");
    const auto overlap = t_.read_any({path + ".nms.iou_threshold", path + ".nms.iou_thr"});
    const auto method = text_or(path + ".nms.method", "linear");
    const auto sigma = t_.read(path + ".nms.sigma");
    if (!type || type.text() == "nms") {
      if (overlap) t_.put("model.test.nms_thresh", overlap.real(), overlap);
    } else if (type.text() == "soft_nms" && (method == "linear" || method == "gaussian")) {
      t_.put("model.test.nms_type", words(method), type);
      if (method == "linear" && overlap) t_.put("model.test.nms_thresh", overlap.real(), overlap);
      if (method == "gaussian" && sigma) t_.put("model.test.soft_nms_sigma", sigma.real(), sigma);
      if (const auto least = t_.read(path + ".nms.min_score"))
        t_.leave_out(least, "what loses its score below model.test.score_thresh goes");
    } else {
      t_.leave_out(type, "model.test.nms_type is hard, linear or gaussian");
    }
  }

  void read_retina_head() {
    const std::string path = "model.bbox_head";
    must(path + ".type", {"RetinaHead"});
    for (const auto* key : {"num_classes", "in_channels"}) t_.read(path + "." + key);
    t_.expect(path + ".feat_channels", t_.look("model.neck.out_channels").need(),
              "its convolutions have as many channels as the pyramid");
    t_.copy(path + ".stacked_convs", "model.head.num_convs");
    t_.put("model.head.norm", words(norm_of(path)), t_.look(path));
    read_anchors(path);
    if (coder(path) != std::vector<double>{1, 1, 1, 1})
      t_.leave_out(t_.look(path + ".bbox_coder.target_stds"), "deltas are not scaled");
    t_.expect(path + ".loss_cls.type", literal(std::string("FocalLoss")), "the focal loss");
    t_.expect(path + ".loss_cls.use_sigmoid", literal(true), "the focal loss of sigmoids");
    t_.copy(path + ".loss_cls.gamma", "model.head.focal_loss_gamma");
    t_.copy(path + ".loss_cls.alpha", "model.head.focal_loss_alpha");
    t_.expect(path + ".loss_cls.loss_weight", literal(1.0), kNoMmWeights);
    read_box_loss(path, "model.head", /*giou=*/true);
    read_assigner(train_, "model.head.bg_iou_thresh", "model.head.fg_iou_thresh", 0);
    t_.expect(train_ + ".sampler.type", literal(std::string("PseudoSampler")), "all anchors count");
    t_.expect(train_ + ".allowed_border", literal(std::int64_t{-1}), "all anchors count");
    note_debug(train_);
    t_.copy(test_ + ".nms_pre", "model.test.topk_candidates");
    t_.copy(test_ + ".min_bbox_size", "model.test.min_size");
    read_detections(test_);
  }

  // ---- Data

  void read_data() {
    const auto train =
        is_new_ ? std::string("train_dataloader.dataset") : std::string("data.train");
    auto inner = train;
    for (int depth = 0; depth < 5 && t_.look(inner + ".dataset"); ++depth) {
      const auto wrapper = text_or(inner + ".type", "");
      if (wrapper == "RepeatDataset") {
        times_ *= real_or(inner + ".times", 1);
      } else if (wrapper == "ClassBalancedDataset") {
        put_balanced(inner);
      } else {
        t_.leave_out(t_.look(inner + ".type"), "a wrapper of data sets without a counterpart");
        t_.leave_out_rest(inner + ".pipeline", "a wrapper's own pipeline");
      }
      inner += ".dataset";
    }
    put_split(inner, "train");
    const auto val = is_new_ ? std::string("val_dataloader.dataset") : std::string("data.val");
    put_split(val, "val");
    const auto filter =
        t_.read_any({inner + ".filter_cfg.filter_empty_gt", inner + ".filter_empty_gt"});
    if (filter) t_.put("data.filter_empty", Config::Data(filter.flag()), filter);
    if (const auto least = t_.read(inner + ".filter_cfg.min_size"))
      t_.leave_out(least, "a stage filter with min_side leaves small images out (COCO has none)");
    const auto classes =
        t_.read_any({inner + ".metainfo.classes", inner + ".metainfo.CLASSES", inner + ".classes"});
    if (classes) {
      Config::Array names;
      if (!classes.need().is_list()) classes.fail("a list of names is needed");
      for (const auto& one : classes.need().list())
        names.push_back({words(Found{&one, classes.path, one.place}.text()), {}});
      t_.put("data.classes", Config::Data(std::move(names)), classes);
    }
    const auto pixels = read_mm_pipelines(t_, inner + ".pipeline", val + ".pipeline");
    if (!pixels.empty()) read_pixels(pixels, "to_rgb");
    read_loaders(inner);
    expect_same_test(val);
  }

  void put_balanced(const std::string& path) {
    const auto threshold = t_.read(path + ".oversample_thr");
    if (!threshold) return;
    const auto origin = origin_of(threshold);
    Config coco(Config::Table{}, origin), repeat(Config::Table{}, origin);
    coco.set("type", {words("coco"), origin});
    repeat.set("type", {words("repeat_factor"), origin});
    repeat.set("of", {Config::Array{{words("coco"), origin}}, origin});
    repeat.set("threshold", {number(threshold.real()), origin});
    t_.put("data.sources", Config::Data(Config::Array{std::move(coco), std::move(repeat)}),
           threshold);
  }

  /// ROOT/annotations/instances_SPLIT.json with ROOT/SPLIT/ is our layout, too.
  void put_split(const std::string& path, const std::string& role) {
    const auto type = t_.read(path + ".type");
    if (type && type.text() != "CocoDataset")
      t_.leave_out(type, "data are read in COCO's layout: docs/migrating/mmdetection.md");
    const auto root = t_.read(path + ".data_root");
    const auto file = t_.read(path + ".ann_file");
    const auto images = t_.read_any(
        {path + ".data_prefix.img", path + ".data_prefix.img_path", path + ".img_prefix"});
    if (!file) return;
    const auto under = [&](const Found& part) {
      auto text = part ? part.text() : std::string();
      if (root && !text.starts_with('/')) {
        const auto base = root.text();
        if (!text.starts_with(base)) text = base + (base.ends_with('/') ? "" : "/") + text;
      }
      while (text.ends_with('/')) text.pop_back();
      return text;
    };
    const auto json = under(file), folder = under(images);
    const std::string middle = "/annotations/instances_", end = ".json";
    const auto at = json.rfind(middle);
    if (at != std::string::npos && json.ends_with(end)) {
      const auto split =
          json.substr(at + middle.size(), json.size() - end.size() - at - middle.size());
      const auto base = json.substr(0, at);
      const auto* other = t_.ours().find_path("data.root");
      if (folder == base + "/" + split &&
          (role == "train" || (other && std::get<std::string>(other->data) == base))) {
        if (role == "train") t_.put("data.root", words(base), file);
        t_.put("data." + role, words(split), file);
        if (role == "train") train_split_ = split;
        return;
      }
    }
    t_.leave_out(file,
                 "data.root has annotations/instances_SPLIT.json and SPLIT/: move or link the "
                 "files there");
  }

  void read_loaders(const std::string& inner) {
    const auto batch =
        t_.read_any({"train_dataloader.batch_size", "data.samples_per_gpu", "data.imgs_per_gpu"});
    if (batch) {
      t_.put("data.batch_size", batch.real(), batch);
      samples_ = batch.real();
    }
    const auto test = t_.read_any({"val_dataloader.batch_size"});
    if (test) t_.put("data.test_batch_size", test.real(), test);
    if (const auto one = t_.read("test_dataloader.batch_size");
        one && !(test && same(*one.value, *test.value)))
      t_.leave_out(one, "eval and predict take data.test_batch_size");
    const auto sampler = t_.read("train_dataloader.batch_sampler.type");
    if (is_new_) {
      const bool groups = sampler && sampler.text() == "AspectRatioBatchSampler";
      if (sampler)
        t_.put("data.aspect_grouping", Config::Data(groups), sampler);
      else
        t_.set("data.aspect_grouping", Config::Data(false), "no AspectRatioBatchSampler");
    }
    const auto order = t_.read("train_dataloader.sampler.type");
    if (order && order.text() != "DefaultSampler" && order.text() != "InfiniteSampler")
      t_.leave_out(order, "images come in a random order; [[data.sources]] weigh them");
    for (const auto* loader : {"train_dataloader", "val_dataloader", "test_dataloader", "data"})
      for (const auto* key : {"num_workers", "persistent_workers", "workers_per_gpu", "drop_last",
                              "sampler", "pin_memory", "collate_fn"})
        t_.read(fmt::format("{}.{}", loader, key));
    for (const auto* key : {"backend_args", "file_client_args", "metainfo", "proposal_file"})
      t_.read(inner + "." + key);
  }

  /// Detection here has one split and one set of sizes.
  void expect_same_test(const std::string& val) {
    for (const auto* key : {"test_mode", "backend_args", "metainfo", "classes"})
      t_.read(val + "." + key);
    t_.leave_out_rest(val, "without a counterpart in evaluation");
    const auto test = is_new_ ? "test_dataloader.dataset" : "data.test";
    const auto one = t_.read(test), other = t_.look(val);
    if (one && other && !same(*one.value, *other.value))
      t_.leave_out(one,
                   "eval and predict take the validation split's sizes; another split is "
                   "--set data.val=...");
    for (const auto* key : {"val_dataloader", "test_dataloader", "train_dataloader", "data"})
      t_.leave_out_rest(key, "without a counterpart in [data]");
    for (const auto* key : {"val_evaluator", "test_evaluator"}) {
      for (const auto* part : {"type", "ann_file", "metric", "format_only", "backend_args"})
        t_.read(fmt::format("{}.{}", key, part));
      t_.leave_out_rest(key, "COCO's figures of boxes, and of masks where there are some");
    }
  }

  // ---- The solver

  void read_optimizer() {
    const std::string path = t_.look("optim_wrapper") ? "optim_wrapper.optimizer" : "optimizer";
    const auto type = t_.read(path + ".type");
    const auto kind = type ? type.text() : "SGD";
    if (kind == "AdamW")
      t_.put("optimizer.type", words("adamw"), type);
    else if (kind != "SGD")
      t_.leave_out(type, "optimizer.type is sgd or adamw");
    t_.copy(path + ".lr", "optimizer.lr");
    t_.copy(path + ".momentum", "optimizer.momentum");
    t_.copy(path + ".nesterov", "optimizer.nesterov");
    if (const auto betas = t_.read(path + ".betas")) {
      const auto both = betas.reals();
      if (both.size() != 2) betas.fail("two numbers are needed");
      t_.put("optimizer.momentum", both[0], betas);
      t_.put("optimizer.beta2", both[1], betas);
    }
    t_.copy(path + ".eps", "optimizer.epsilon");
    read_decay(path);
    read_batch();
    const auto norm =
        t_.read_any({"optim_wrapper.clip_grad.max_norm", "optimizer_config.grad_clip.max_norm"});
    if (norm) t_.put("optimizer.clip_norm", norm.real(), norm);
    for (const auto* clip : {"optim_wrapper.clip_grad", "optimizer_config.grad_clip"})
      t_.expect(std::string(clip) + ".norm_type", literal(std::int64_t{2}), "the norm is Euclid's");
    t_.read("optimizer_config.type");
    t_.copy("optim_wrapper.accumulative_counts", "optimizer.accumulate");
    read_precision();
  }

  void read_decay(const std::string& path) {
    const auto decay = t_.read(path + ".weight_decay");
    const double whole = decay ? decay.real() : 0;
    if (decay)
      t_.put("optimizer.weight_decay", whole, decay);
    else
      t_.set("optimizer.weight_decay", Config::Data(0.0), "torch's default");
    const std::string rules =
        t_.look("optim_wrapper") ? "optim_wrapper.paramwise_cfg" : "optimizer.paramwise_cfg";
    const auto norms = t_.read(rules + ".norm_decay_mult");
    if (norms)
      t_.put("optimizer.weight_decay_norm", whole * norms.real(), norms, "times weight_decay");
    else if (trains_norms_ && decay)
      t_.put("optimizer.weight_decay_norm", whole, decay, "torch decays norms as all else");
    if (const auto biases = t_.read(rules + ".bias_decay_mult"))
      t_.put("optimizer.weight_decay_bias", whole * biases.real(), biases, "times weight_decay");
    if (const auto biases = t_.read(rules + ".bias_lr_mult"))
      t_.put("optimizer.bias_lr_factor", biases.real(), biases);
    t_.read(rules + ".bypass_duplicate");
    read_groups(rules + ".custom_keys", whole);
    t_.leave_out_rest(rules,
                      "[[optimizer.groups]] has rules by name, with lr_factor, weight_decay");
  }

  void read_groups(const std::string& path, double decay) {
    const auto rules = t_.look(path);
    if (!rules || !rules.need().is_dict()) return;
    Config::Array groups;
    for (const auto& [name, rule] : rules.need().dict()) {
      const auto at = path + "." + name;
      if (name != "backbone" || !rule.is_dict()) {
        t_.read(at);
        t_.leave_out(t_.look(at),
                     "names of parameters are others here: [[optimizer.groups]] match");
        continue;
      }
      const auto rate = t_.read(at + ".lr_mult"), factor = t_.read(at + ".decay_mult");
      Config group(Config::Table{}, origin_of(t_.look(at)));
      group.set("match", {words("backbone.*"), origin_of(t_.look(at))});
      if (rate) group.set("lr_factor", {number(rate.real()), origin_of(rate)});
      if (factor) group.set("weight_decay", {number(decay * factor.real()), origin_of(factor)});
      groups.push_back(std::move(group));
    }
    if (!groups.empty()) t_.put("optimizer.groups", Config::Data(std::move(groups)), rules);
  }

  /// Which batch the rate is for.
  void read_batch() {
    const auto base = t_.read("auto_scale_lr.base_batch_size");
    t_.read("auto_scale_lr.enable");
    const auto gpus = static_cast<double>(options_.gpus.value_or(kUsualGpus));
    batch_ = gpus * samples_;
    if (base && !options_.gpus) {
      t_.put("optimizer.lr_batch", base.real(), base);
      batch_ = base.real();
    } else {
      t_.set("optimizer.lr_batch", number(batch_),
             fmt::format("{} images on each of {} GPUs{}", samples_, gpus,
                         options_.gpus ? ""
                                       : ", as MMDetection's recipes have; --gpus says another "
                                         "number"));
    }
  }

  void read_precision() {
    const auto wrapper = t_.read("optim_wrapper.type");
    const auto scale = t_.read_any({"optim_wrapper.loss_scale", "fp16.loss_scale"});
    const auto half = t_.look("fp16");
    t_.read("optim_wrapper.dtype");
    if (wrapper && wrapper.text() != "OptimWrapper" && wrapper.text() != "AmpOptimWrapper")
      t_.leave_out(wrapper, "optim_wrapper is OptimWrapper or AmpOptimWrapper");
    if (!half && !(wrapper && wrapper.text() == "AmpOptimWrapper")) return;
    const auto found = half ? half : wrapper;
    const auto type = t_.look("optim_wrapper.dtype");
    const bool brain = type && type.text() == "bfloat16";
    t_.put("train.precision", words(brain ? "bf16" : "fp16"), found);
    if (scale && scale.need().type_name() != "a string" && !scale.need().is_dict())
      t_.put("train.loss_scale", scale.real(), scale);
  }

  // ---- The schedule

  void read_schedule() {
    read_length();
    if (t_.look("param_scheduler"))
      read_schedulers();
    else
      read_lr_config();
  }

  void read_length() {
    const auto epochs = t_.read_any({"train_cfg.max_epochs", "runner.max_epochs", "total_epochs"});
    const auto steps = t_.read_any({"train_cfg.max_iters", "runner.max_iters"});
    t_.read("runner.type");
    if (is_new_) t_.read("train_cfg.type");
    by_steps_ = static_cast<bool>(steps) && !epochs;
    if (epochs)
      t_.put("train.epochs", rounded_epochs(epochs.real() * times_), epochs, repeated());
    else if (steps)
      t_.put("train.epochs", epochs_of(steps.real(), steps), steps, how_many(steps.real()));
    length_ = epochs ? epochs.real() : 0;
  }

  std::string repeated() const {
    return times_ == 1 ? "" : fmt::format("x {}, as RepeatDataset says", times_);
  }

  double epochs_of(double steps, const Found& found) {
    if (!options_.images && train_split_ != "train2017")
      found.fail(
          "how many epochs are that? Say how many images of the training split have an "
          "object: --images N");
    return rounded_epochs(steps * batch_ / static_cast<double>(images()));
  }
  std::string how_many(double steps) const {
    return fmt::format("{} x {} images / {}", steps, batch_, images());
  }
  std::int64_t images() const { return options_.images.value_or(kCocoTrain2017WithObjects); }

  /// A point of the schedule in our epochs.
  double point(double at, bool by_epoch, const Found& found) {
    return by_epoch ? rounded_epochs(at * times_) : epochs_of(at, found);
  }

  void put_warmup(double length, bool by_epoch, const Found& from) {
    t_.put("schedule.warmup",
           words(by_epoch ? fmt::format("{} epochs", length * times_)
                          : fmt::format("{} steps", length)),
           from);
  }

  void no_warmup() { t_.set("schedule.warmup", words("0 steps"), "no warm-up"); }

  /// 3.x: a list of schedulers, each from `begin` to `end`.
  void read_schedulers() {
    const auto list = t_.look("param_scheduler");
    const auto count = list.need().is_list() ? list.need().list().size() : std::size_t{1};
    bool warms = false;
    for (std::size_t i = 0; i < count; ++i) {
      const auto path =
          list.need().is_list() ? fmt::format("param_scheduler.{}", i) : "param_scheduler";
      const auto type = t_.read(path + ".type");
      if (!type) continue;
      const bool by_epoch = flag_or(path + ".by_epoch", true);
      const auto begin = t_.read(path + ".begin"), end = t_.read(path + ".end");
      t_.read(path + ".convert_to_iter_based");
      if (type.text() == "LinearLR" && (!begin || begin.real() == 0) && end) {
        put_warmup(end.real(), by_epoch, end);
        if (const auto factor = t_.read(path + ".start_factor"))
          t_.put("schedule.warmup_factor", factor.real(), factor);
        else
          t_.set("schedule.warmup_factor", Config::Data(1.0 / 3), "LinearLR's default");
        warms = true;
      } else if (type.text() == "MultiStepLR") {
        read_milestones(path + ".milestones", by_epoch, end);
        read_gamma(path + ".gamma");
      } else if (type.text() == "CosineAnnealingLR") {
        t_.put("schedule.type", words("cosine"), type);
        t_.read(path + ".T_max");
        t_.expect(path + ".eta_min", literal(0.0), "the rate falls to 0");
      } else if (type.text() == "PolyLR") {
        t_.put("schedule.type", words("poly"), type);
        t_.put("schedule.power", real_or(path + ".power", 1), type);
        t_.expect(path + ".eta_min", literal(0.0), "the rate falls to 0");
      } else {
        t_.leave_out(type, "schedule.type is step, cosine, poly, exponential or constant");
      }
      t_.leave_out_rest(path, "without a counterpart in [schedule]");
    }
    if (!warms) no_warmup();
  }

  void read_milestones(const std::string& path, bool by_epoch, const Found& end) {
    const auto found = t_.read(path);
    if (!found) return;
    std::vector<double> ours;
    for (const double at : found.reals()) ours.push_back(point(at, by_epoch, found));
    t_.put("schedule.milestones", ours, found,
           by_epoch ? repeated() : fmt::format("x {} images / {}", batch_, images()));
    const auto all = found.reals();
    if (end && !all.empty() && end.real() < std::ranges::max(all))
      t_.leave_out(end,
                   "ends the scheduler before its last milestones, which MMDetection 3 never "
                   "reaches; here they hold");
  }

  void read_gamma(const std::string& path) {
    if (const auto found = t_.read(path)) t_.put("schedule.gamma", found.real(), found);
  }

  /// 2.x: one dict.
  void read_lr_config() {
    const std::string path = "lr_config";
    if (!t_.look(path)) return;
    const auto policy = t_.read(path + ".policy");
    const auto kind = policy ? policy.text() : "step";
    const bool by_epoch = flag_or(path + ".by_epoch", !by_steps_);
    if (kind == "step") {
      read_milestones(path + ".step", by_epoch && !by_steps_, {});
      read_gamma(path + ".gamma");
    } else if (kind == "CosineAnnealing") {
      t_.put("schedule.type", words("cosine"), policy);
      t_.expect(path + ".min_lr", literal(0.0), "the rate falls to 0");
    } else if (kind == "poly") {
      t_.put("schedule.type", words("poly"), policy);
      t_.put("schedule.power", real_or(path + ".power", 1), policy);
      t_.expect(path + ".min_lr", literal(0.0), "the rate falls to 0");
    } else {
      t_.leave_out(policy, "schedule.type is step, cosine, poly, exponential or constant");
    }
    const auto warmup = t_.read(path + ".warmup");
    const auto length = t_.read(path + ".warmup_iters"), ratio = t_.read(path + ".warmup_ratio");
    const bool in_epochs = flag_or(path + ".warmup_by_epoch", false);
    if (!warmup) return no_warmup();
    if (warmup.text() != "linear") t_.leave_out(warmup, "the warm-up is linear");
    if (length) put_warmup(length.real(), in_epochs, length);
    if (ratio)
      t_.put("schedule.warmup_factor", ratio.real(), ratio);
    else
      t_.set("schedule.warmup_factor", Config::Data(0.1), "mmcv's default");
  }

  // ---- The run

  void read_run() {
    const auto interval = t_.read_any({"train_cfg.val_interval", "evaluation.interval"});
    t_.read("evaluation.metric");
    if (interval)
      put_every("callbacks.evaluate", interval, !by_steps_);
    else if (times_ != 1)
      t_.set("callbacks.evaluate.every", words(fmt::format("{} epochs", times_)), repeated());
    const auto saves =
        t_.read_any({"default_hooks.checkpoint.interval", "checkpoint_config.interval"});
    const bool by_epoch = flag_or("default_hooks.checkpoint.by_epoch",
                                  flag_or("checkpoint_config.by_epoch", !by_steps_));
    if (saves) put_every("callbacks.checkpoint", saves, by_epoch);
    if (const auto keep = t_.read_any(
            {"default_hooks.checkpoint.max_keep_ckpts", "checkpoint_config.max_keep_ckpts"}))
      t_.put("callbacks.checkpoint.keep", std::max(0.0, keep.real()), keep);
    read_best();
    if (const auto log = t_.read_any({"default_hooks.logger.interval", "log_config.interval"}))
      t_.put("callbacks.log.every", words(fmt::format("{} steps", log.integer())), log);
    if (const auto folder = t_.read("work_dir"))
      t_.put("train.output", words(folder.text()), folder);
    if (const auto seed = t_.read_any({"randomness.seed", "seed"}))
      t_.put("train.seed", seed.real(), seed);
    for (const auto* key :
         {"default_hooks.checkpoint.type", "default_hooks.logger.type", "default_hooks.timer",
          "default_hooks.param_scheduler", "default_hooks.sampler_seed", "log_config.hooks",
          "default_hooks.visualization.type", "test_cfg.type", "val_cfg.type"})
      t_.read(key);
  }

  void put_every(const std::string& callback, const Found& found, bool by_epoch) {
    const double length = found.real() * (by_epoch ? times_ : 1);
    t_.put(callback + ".every",
           words(by_epoch ? length == 1 ? "1 epoch" : fmt::format("{} epochs", length)
                          : fmt::format("{} steps", length)),
           found, by_epoch ? repeated() : "");
  }

  void read_best() {
    const auto best = t_.read_any({"default_hooks.checkpoint.save_best", "evaluation.save_best"});
    if (!best) return;
    const auto name = best.text();
    if (name == "auto" || name == "bbox_mAP" || name == "coco/bbox_mAP")
      t_.put("callbacks.keep_best.metric", words("bbox/AP"), best);
    else if (name == "segm_mAP" || name == "coco/segm_mAP")
      t_.put("callbacks.keep_best.metric", words("segm/AP"), best);
    else
      t_.leave_out(best, "[callbacks.keep_best] metric is one of metrics.jsonl, such as bbox/AP50");
  }

  // ---- What is left

  void note_rest() {
    for (const auto& path : {train_, test_, std::string("model")})
      t_.leave_out_rest(path, "no counterpart is known");
    for (const auto* key :
         {"default_scope", "env_cfg", "vis_backends", "visualizer", "log_processor", "log_level",
          "dist_params", "opencv_num_threads", "mp_start_method", "find_unused_parameters",
          "cudnn_benchmark", "gpu_ids", "device", "resume", "resume_from", "launcher", "val_cfg",
          "test_cfg"})
      t_.leave_out_rest(key, "how MMDetection runs, not what is trained");
    if (const auto hooks = t_.read("custom_hooks"); hooks && !is_class_check(*hooks.value))
      t_.leave_out(hooks, "hooks are callbacks here: docs/callbacks.md");
    const auto workflow = t_.read("workflow");
    if (workflow && workflow.need().is_list() && workflow.need().list().size() > 1)
      t_.leave_out(workflow,
                   "[callbacks.validation_loss] measures losses over the validation split");
    for (const auto* key :
         {"default_hooks", "checkpoint_config", "evaluation", "optimizer", "optimizer_config",
          "optim_wrapper", "fp16", "lr_config", "runner", "train_cfg", "auto_scale_lr",
          "log_config", "custom_imports", "tta_model", "tta_pipeline"})
      t_.leave_out_rest(key, "no counterpart is known");
    for (const auto& [name, value] : config_.unused)
      if (!is_known(name)) t_.leave_out({&value, name}, "used by no other line of the recipe");
  }

  /// NumClassCheckHook, which is in every recipe of 2.x: classes are those of the data set here.
  static bool is_class_check(const Value& hooks) {
    return hooks.is_list() && hooks.list().size() == 1 && hooks.list()[0].is_dict() &&
           hooks.list()[0].find("type") &&
           hooks.list()[0].find("type")->text() == "'NumClassCheckHook'";
  }

  static bool is_known(const std::string& name) {
    static const std::vector<std::string> known = {"model",
                                                   "train_dataloader",
                                                   "val_dataloader",
                                                   "test_dataloader",
                                                   "val_evaluator",
                                                   "test_evaluator",
                                                   "train_cfg",
                                                   "val_cfg",
                                                   "test_cfg",
                                                   "param_scheduler",
                                                   "optim_wrapper",
                                                   "auto_scale_lr",
                                                   "default_scope",
                                                   "default_hooks",
                                                   "custom_hooks",
                                                   "env_cfg",
                                                   "vis_backends",
                                                   "visualizer",
                                                   "log_processor",
                                                   "log_level",
                                                   "load_from",
                                                   "resume",
                                                   "data",
                                                   "evaluation",
                                                   "optimizer",
                                                   "optimizer_config",
                                                   "lr_config",
                                                   "runner",
                                                   "checkpoint_config",
                                                   "log_config",
                                                   "dist_params",
                                                   "resume_from",
                                                   "workflow",
                                                   "opencv_num_threads",
                                                   "mp_start_method",
                                                   "fp16",
                                                   "total_epochs",
                                                   "work_dir",
                                                   "seed",
                                                   "randomness",
                                                   "launcher",
                                                   "gpu_ids",
                                                   "device",
                                                   "cudnn_benchmark",
                                                   "find_unused_parameters",
                                                   "custom_imports",
                                                   "tta_model",
                                                   "tta_pipeline"};
    return std::ranges::count(known, name) > 0;
  }

  static constexpr const char* kNoMmWeights = "losses are added without weights";

  const ForeignConfig& config_;
  const ImportOptions& options_;
  Translation t_;
  bool is_new_ = false;       // 3.x
  std::string train_, test_;  // where the model's training and testing are configured
  bool trains_norms_ = false;
  double times_ = 1;    // an epoch of theirs, in ours
  double samples_ = 2;  // images per GPU
  double batch_ = 16;   // images per step
  bool by_steps_ = false;
  double length_ = 0;
  std::string train_split_;
};

}  // namespace

ImportedConfig import_mmdetection(const ForeignConfig& config, const ImportOptions& options) {
  return MmRules(config, options).all();
}

}  // namespace millrace
