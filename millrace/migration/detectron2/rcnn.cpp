#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "millrace/migration/detectron2/model_parts.h"
#include "millrace/migration/detectron2/readers.h"

namespace millrace::detectron2 {
namespace {

void read_rpn(Translation& t) {
  read_anchor_matching(t, "MODEL.RPN", "model.rpn");
  for (const auto& [theirs, ours] : {std::pair{"BOUNDARY_THRESH", "boundary_thresh"},
                                     {"BATCH_SIZE_PER_IMAGE", "batch_size_per_image"},
                                     {"POSITIVE_FRACTION", "positive_fraction"},
                                     {"SMOOTH_L1_BETA", "smooth_l1_beta"},
                                     {"PRE_NMS_TOPK_TRAIN", "pre_nms_top_n_train"},
                                     {"PRE_NMS_TOPK_TEST", "pre_nms_top_n_test"},
                                     {"POST_NMS_TOPK_TRAIN", "post_nms_top_n_train"},
                                     {"POST_NMS_TOPK_TEST", "post_nms_top_n_test"},
                                     {"NMS_THRESH", "nms_thresh"}})
    t.copy(std::string("MODEL.RPN.") + theirs, std::string("model.rpn.") + ours);
  t.copy("MODEL.PROPOSAL_GENERATOR.MIN_SIZE", "model.rpn.min_size");
  must(t, "MODEL.RPN.HEAD_NAME", {"StandardRPNHead"});
  must(t, "MODEL.RPN.CONV_DIMS", {"[-1]"});
  t.read("MODEL.RPN.IN_FEATURES");
  t.expect("MODEL.RPN.BBOX_REG_LOSS_TYPE", literal(std::string("smooth_l1")),
           "proposals are learned with (smooth) L1 of the deltas");
  t.expect("MODEL.RPN.BBOX_REG_LOSS_WEIGHT", literal(1.0), kNoLossWeights);
  t.expect("MODEL.RPN.LOSS_WEIGHT", literal(1.0), kNoLossWeights);
  t.expect("MODEL.RPN.BBOX_REG_WEIGHTS", ones(), "deltas of proposals have the weight 1");
}

void read_regions(Translation& t, bool cascade) {
  const auto first = t.read("MODEL.ROI_HEADS.IOU_THRESHOLDS");
  if (first.reals().size() != 1) first.fail("regions are foreground or background: one threshold");
  if (cascade) {
    const auto iou = t.read("MODEL.ROI_BOX_CASCADE_HEAD.IOUS");
    if (iou.reals().empty() || iou.reals().front() != first.reals().front())
      first.fail("it differs from the first of MODEL.ROI_BOX_CASCADE_HEAD.IOUS");
    t.put("model.roi.fg_iou_thresh", iou.reals(), iou);
    const auto weights = t.read("MODEL.ROI_BOX_CASCADE_HEAD.BBOX_REG_WEIGHTS");
    t.put("model.box.bbox_reg_weights", weights.reals(), weights);
    t.read("MODEL.ROI_BOX_HEAD.BBOX_REG_WEIGHTS");
  } else {
    t.put("model.roi.fg_iou_thresh", first.reals().front(), first);
    const auto weights = t.read("MODEL.ROI_BOX_HEAD.BBOX_REG_WEIGHTS");
    t.put("model.box.bbox_reg_weights", weights.reals(), weights);
  }
  t.expect("MODEL.ROI_HEADS.IOU_LABELS",
           literal(Value::List{literal(std::int64_t{0}), literal(std::int64_t{1})}),
           "regions are background or foreground");
  t.copy("MODEL.ROI_HEADS.BATCH_SIZE_PER_IMAGE", "model.roi.batch_size_per_image");
  t.copy("MODEL.ROI_HEADS.POSITIVE_FRACTION", "model.roi.positive_fraction");
  t.copy("MODEL.ROI_HEADS.SCORE_THRESH_TEST", "model.test.score_thresh");
  t.copy("MODEL.ROI_HEADS.NMS_THRESH_TEST", "model.test.nms_thresh");
  t.expect("MODEL.ROI_HEADS.PROPOSAL_APPEND_GT", literal(true),
           "ground truth is always among the regions that are sampled");
  t.read("MODEL.ROI_HEADS.IN_FEATURES");
  read_classes(t, "MODEL.ROI_HEADS.NUM_CLASSES");
}

/// The layers of a head on a pyramid; on C4 the last stage of the ResNet stands for them.
void read_box_layers(Translation& t) {
  if (is_on_c4(t)) {
    for (const auto* key : {"NUM_CONV", "NUM_FC", "NORM", "CONV_DIM", "FC_DIM"})
      t.read(std::string("MODEL.ROI_BOX_HEAD.") + key);
    return;
  }
  t.copy("MODEL.ROI_BOX_HEAD.FC_DIM", "model.box.fc_dim");
  const auto convs = t.read("MODEL.ROI_BOX_HEAD.NUM_CONV");
  const auto layers = t.read("MODEL.ROI_BOX_HEAD.NUM_FC");
  const bool plain = convs.integer() == 0 && layers.integer() == 2;
  if (!plain && !(convs.integer() == 4 && layers.integer() == 1))
    layers.fail(
        fmt::format("with NUM_CONV = {}: the box heads here are two layers (\"2fc\"), or four "
                    "convolutions and "
                    "a layer (\"4conv1fc\")",
                    convs.integer()));
  t.put("model.box.type", words(plain ? "2fc" : "4conv1fc"), plain ? layers : convs);
  if (plain) {
    t.read("MODEL.ROI_BOX_HEAD.NORM"), t.read("MODEL.ROI_BOX_HEAD.CONV_DIM");
  } else {
    put_norm(t, "MODEL.ROI_BOX_HEAD.NORM", "model.box.norm");
    t.expect("MODEL.ROI_BOX_HEAD.CONV_DIM", t.look("MODEL.FPN.OUT_CHANNELS").need(),
             "its convolutions have as many channels as the pyramid");
  }
}

void read_box_head(Translation& t) {
  read_box_layers(t);
  for (const auto& [theirs, ours] : {std::pair{"POOLER_RESOLUTION", "pooler_resolution"},
                                     {"CLS_AGNOSTIC_BBOX_REG", "cls_agnostic_bbox_reg"}})
    t.copy(std::string("MODEL.ROI_BOX_HEAD.") + theirs, std::string("model.box.") + ours);
  read_box_loss(t, "MODEL.ROI_BOX_HEAD.BBOX_REG_LOSS_TYPE", "MODEL.ROI_BOX_HEAD.SMOOTH_L1_BETA",
                "model.box");
  t.expect("MODEL.ROI_BOX_HEAD.BBOX_REG_LOSS_WEIGHT", literal(1.0), kNoLossWeights);
  t.expect("MODEL.ROI_BOX_HEAD.TRAIN_ON_PRED_BOXES", literal(false),
           "masks learn from the proposals, as by default in detectron2");
  t.expect("MODEL.ROI_BOX_HEAD.USE_FED_LOSS", literal(false), "classes are learned with softmax");
  t.expect("MODEL.ROI_BOX_HEAD.USE_SIGMOID_CE", literal(false), "classes are learned with softmax");
  t.copy("MODEL.ROI_BOX_HEAD.POOLER_SAMPLING_RATIO", "model.roi.sampling_ratio");
  const auto pooler = t.read("MODEL.ROI_BOX_HEAD.POOLER_TYPE");
  must(t, "MODEL.ROI_BOX_HEAD.POOLER_TYPE", {"ROIAlignV2", "ROIAlign"});
  t.put("model.roi.aligned", Config::Data(pooler.text() == "ROIAlignV2"), pooler);
}

void read_mask_head(Translation& t) {
  must(t, "MODEL.ROI_MASK_HEAD.NAME", {"MaskRCNNConvUpsampleHead"});
  // On C4 both heads take the regions of the box head.
  t.read("MODEL.ROI_MASK_HEAD.POOLER_RESOLUTION");
  t.copy(is_on_c4(t) ? "MODEL.ROI_BOX_HEAD.POOLER_RESOLUTION"
                     : "MODEL.ROI_MASK_HEAD.POOLER_RESOLUTION",
         "model.mask.pooler_resolution");
  t.copy("MODEL.ROI_MASK_HEAD.NUM_CONV", "model.mask.num_convs");
  t.copy("MODEL.ROI_MASK_HEAD.CONV_DIM", "model.mask.conv_dim");
  for (const auto& [mask, box] :
       {std::pair{"MODEL.ROI_MASK_HEAD.NORM", "MODEL.FPN.NORM"},
        {"MODEL.ROI_MASK_HEAD.POOLER_SAMPLING_RATIO", "MODEL.ROI_BOX_HEAD.POOLER_SAMPLING_RATIO"},
        {"MODEL.ROI_MASK_HEAD.POOLER_TYPE", "MODEL.ROI_BOX_HEAD.POOLER_TYPE"}})
    t.expect(mask, t.look(box).need(), fmt::format("here the mask head follows {}", box));
  t.expect("MODEL.ROI_MASK_HEAD.CLS_AGNOSTIC_MASK", literal(false), "each class has a mask");
}

}  // namespace

bool is_on_c4(Translation& t) {
  return t.look("MODEL.BACKBONE.NAME").text() == "build_resnet_backbone";
}

void read_rcnn(Translation& t) {
  must(t, "MODEL.BACKBONE.NAME", {"build_resnet_fpn_backbone", "build_resnet_backbone"});
  must(t, "MODEL.PROPOSAL_GENERATOR.NAME", {"RPN"});
  std::string heads;
  if (is_on_c4(t)) {
    t.put("model.backbone.out", words("c4"), t.read("MODEL.BACKBONE.NAME"));
    heads = must(t, "MODEL.ROI_HEADS.NAME", {"Res5ROIHeads"});
    must(t, "MODEL.RPN.IN_FEATURES", {"[\"res4\"]", "['res4']"});
    t.read("MODEL.ROI_BOX_HEAD.NAME");
  } else {
    heads = must(t, "MODEL.ROI_HEADS.NAME", {"StandardROIHeads", "CascadeROIHeads"});
    must(t, "MODEL.ROI_BOX_HEAD.NAME", {"FastRCNNConvFCHead"});
  }
  const auto masks = t.read("MODEL.MASK_ON");
  if (heads == "CascadeROIHeads") {
    t.put("model.type", words("cascadercnn"), t.read("MODEL.ROI_HEADS.NAME"));
    t.put("model.masks", Config::Data(masks.flag()), masks);
  } else {
    t.put("model.type", words(masks.flag() ? "maskrcnn" : "fasterrcnn"), masks);
  }
  read_anchors(t);
  read_rpn(t);
  read_regions(t, heads == "CascadeROIHeads");
  read_box_head(t);
  if (masks.flag()) read_mask_head(t);
}

}  // namespace millrace::detectron2
