#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "millrace/migration/mmdetection/head_parts.h"
#include "millrace/migration/mmdetection/model_parts.h"
#include "millrace/migration/mmdetection/readers.h"

namespace millrace::mmdetection {
namespace {

/// A stage of a cascade, or the only one. Returns whether its norms are trained.
bool read_box_head(Translation& t, const std::string& path, std::size_t stage) {
  const auto type = must(t, path + ".type", {"Shared2FCBBoxHead", "Shared4Conv1FCBBoxHead"});
  for (const auto* key : {"in_channels", "roi_feat_size", "num_classes"}) t.read(path + "." + key);
  t.expect(path + ".loss_cls.type", literal(std::string("CrossEntropyLoss")),
           "classes are learned with softmax");
  t.expect(path + ".loss_cls.use_sigmoid", literal(false), "classes are learned with softmax");
  t.expect(path + ".loss_cls.loss_weight", literal(1.0), kNoLossWeights);
  t.read(path + ".reg_decoded_bbox");  // goes with its loss
  if (stage > 0) {                     // all stages are alike: the first decides
    for (const auto* key : {"type", "fc_out_channels", "reg_class_agnostic", "loss_bbox",
                            "conv_out_channels", "norm_cfg"}) {
      const auto first = t.look("model.roi_head.bbox_head.0." + std::string(key));
      const auto one = t.read(path + "." + key);
      if (static_cast<bool>(first) != static_cast<bool>(one) ||
          (one && !same(*first.value, *one.value)))
        (one ? one : first).fail("the stages of a cascade have the same head");
    }
    return false;
  }
  const bool plain = type == "Shared2FCBBoxHead";
  t.put("model.box.type", words(plain ? "2fc" : "4conv1fc"), t.look(path + ".type"));
  t.copy(path + ".fc_out_channels", "model.box.fc_dim");
  t.copy(path + ".reg_class_agnostic", "model.box.cls_agnostic_bbox_reg");
  const auto norm = plain ? "none" : norm_of(t, path);
  if (!plain) {
    t.put("model.box.norm", words(norm), t.look(path));
    t.expect(path + ".conv_out_channels", t.look("model.neck.out_channels").need(),
             "its convolutions have as many channels as the pyramid");
  }
  read_box_loss(t, path, "model.box", /*giou=*/true);
  return norm != "none";
}

/// `first`: its keys hold for both heads.
void read_pooler(Translation& t, const std::string& path, const std::string& resolution,
                 bool first) {
  must(t, path + ".type", {"SingleRoIExtractor"});
  must(t, path + ".roi_layer.type", {"RoIAlign"});
  t.read(path + ".out_channels"), t.read(path + ".featmap_strides");
  if (const auto size = t.read_any({path + ".roi_layer.output_size", path + ".roi_layer.out_size"}))
    t.put(resolution, size.real(), size);
  const auto samples =
      t.read_any({path + ".roi_layer.sampling_ratio", path + ".roi_layer.sample_num"});
  const auto aligned = t.read(path + ".roi_layer.aligned");
  const auto scale = t.read(path + ".finest_scale");
  if (first) {
    if (samples) t.put("model.roi.sampling_ratio", samples.real(), samples);
    if (aligned) t.put("model.roi.aligned", Config::Data(aligned.flag()), aligned);
    if (scale)
      t.put("model.roi.canonical_box_size", 4 * scale.real(), scale, "the side that goes to P4");
    return;
  }
  for (const auto& [mine, key] : {std::pair{samples, "sampling_ratio"}, {aligned, "aligned"}})
    if (const auto other =
            t.look(std::string("model.roi_head.bbox_roi_extractor.roi_layer.") + key);
        mine && (!other || !same(*mine.value, *other.value)))
      t.leave_out(mine, "the mask head's regions are pooled as the box head's");
}

/// Returns whether its norms are trained.
bool read_mask_head(Translation& t, const std::string& path) {
  must(t, path + ".type", {"FCNMaskHead"});
  t.copy(path + ".num_convs", "model.mask.num_convs");
  t.copy(path + ".conv_out_channels", "model.mask.conv_dim");
  for (const auto* key : {"in_channels", "num_classes", "roi_feat_size"}) t.read(path + "." + key);
  t.expect(path + ".class_agnostic", literal(false), "each class has a mask");
  if (t.look("model.roi_head.bbox_head").need().is_list())
    t.leave_out(t.look(path + ".type"),
                "MMDetection trains a mask head for each stage; here one learns from the regions "
                "of the first, as in detectron2");
  t.expect(path + ".loss_mask.type", literal(std::string("CrossEntropyLoss")),
           "masks are learned with binary cross-entropy");
  t.expect(path + ".loss_mask.use_mask", literal(true),
           "masks are learned with binary cross-entropy");
  t.expect(path + ".loss_mask.loss_weight", literal(1.0), kNoLossWeights);
  const auto norm = norm_of(t, path);
  if (const auto* pyramid = t.ours().find_path("model.fpn.norm");
      pyramid && std::get<std::string>(pyramid->data) != norm)
    t.leave_out(t.look(path), fmt::format("its norm is '{}': here it has the pyramid's", norm));
  t.set("model.mask.init_std", Config::Data(0.0), "He's, as FCNMaskHead's predictor starts");
  return norm != "none";
}

void read_region_training(Translation& t, const Layout& layout, bool cascade, std::size_t stages) {
  std::vector<double> thresholds;
  for (std::size_t i = 0; i < stages; ++i) {
    const auto path = layout.train_cfg + ".rcnn" + (cascade ? fmt::format(".{}", i) : "");
    const auto high = t.look(path + ".assigner.pos_iou_thr");
    if (!high) t.look("model.roi_head").fail(path + ".assigner.pos_iou_thr is missing");
    read_assigner(t, path, "", "model.roi.fg_iou_thresh", /*notes_floor=*/false);
    thresholds.push_back(high.real());
    if (i == 0) {
      read_sampler(t, path, "model.roi");
    } else {
      const auto first = t.look(layout.train_cfg + ".rcnn.0.sampler"),
                 one = t.read(path + ".sampler");
      if (first && one && !same(*first.value, *one.value))
        one.fail("the stages of a cascade sample alike");
    }
    t.expect(path + ".mask_size", literal(std::int64_t{28}),
             "masks have twice model.mask.pooler_resolution");
    note_debug(t, path);
  }
  if (cascade)
    t.put("model.roi.fg_iou_thresh", thresholds, t.look(layout.train_cfg + ".rcnn"),
          "pos_iou_thr of each stage");
}

}  // namespace

bool read_roi_head(Translation& t, const Layout& layout, bool cascade, bool masks) {
  const std::string path = "model.roi_head";
  must(t, path + ".type", {cascade ? "CascadeRoIHead" : "StandardRoIHead"});
  const bool list = t.look(path + ".bbox_head") && t.look(path + ".bbox_head").need().is_list();
  const auto stages = list ? t.look(path + ".bbox_head").need().list().size() : std::size_t{1};
  if (cascade != list || stages == 0)
    t.look(path).fail(cascade ? "a cascade's bbox_head is a list of its stages"
                              : "bbox_head is one head");
  const auto head = [&](std::size_t i) {
    return path + (list ? fmt::format(".bbox_head.{}", i) : ".bbox_head");
  };
  bool trains_norms = false;
  std::vector<double> weights;
  for (std::size_t i = 0; i < stages; ++i) {
    const auto more = coder_weights(t, head(i));
    weights.insert(weights.end(), more.begin(), more.end());
    trains_norms |= read_box_head(t, head(i), i);
  }
  const auto deviations = t.look(head(0) + ".bbox_coder.target_stds");
  if (deviations)
    t.put("model.box.bbox_reg_weights", weights, deviations, "1 / target_stds of each stage");
  if (cascade) {
    t.read(path + ".num_stages");
    t.expect(path + ".stage_loss_weights", literal(Value::List(stages, literal(1.0))),
             "the losses of all stages count the same, as in detectron2");
  }
  read_pooler(t, path + ".bbox_roi_extractor", "model.box.pooler_resolution", true);
  if (masks) {
    read_pooler(t, path + ".mask_roi_extractor", "model.mask.pooler_resolution", false);
    trains_norms |= read_mask_head(t, path + ".mask_head");
  }
  read_region_training(t, layout, cascade, stages);
  read_detections(t, layout.test_cfg + ".rcnn");
  t.expect(layout.test_cfg + ".rcnn.mask_thr_binary", literal(0.5), "a mask's border is at 0.5");
  return trains_norms;
}

}  // namespace millrace::mmdetection
