#include <string>
#include <utility>

#include "millrace/migration/detectron2/model_parts.h"
#include "millrace/migration/detectron2/readers.h"

namespace millrace::detectron2 {

void read_retinanet(Translation& t) {
  must(t, "MODEL.BACKBONE.NAME", {"build_retinanet_resnet_fpn_backbone"});
  t.put("model.type", words("retinanet"), t.read("MODEL.META_ARCHITECTURE"));
  t.read("MODEL.MASK_ON");
  read_anchors(t);
  read_anchor_matching(t, "MODEL.RETINANET", "model.head");
  for (const auto& [theirs, ours] : {std::pair{"NUM_CONVS", "head.num_convs"},
                                     {"PRIOR_PROB", "head.prior_prob"},
                                     {"FOCAL_LOSS_GAMMA", "head.focal_loss_gamma"},
                                     {"FOCAL_LOSS_ALPHA", "head.focal_loss_alpha"},
                                     {"SCORE_THRESH_TEST", "test.score_thresh"},
                                     {"TOPK_CANDIDATES_TEST", "test.topk_candidates"},
                                     {"NMS_THRESH_TEST", "test.nms_thresh"}})
    t.copy(std::string("MODEL.RETINANET.") + theirs, std::string("model.") + ours);
  read_box_loss(t, "MODEL.RETINANET.BBOX_REG_LOSS_TYPE", "MODEL.RETINANET.SMOOTH_L1_LOSS_BETA",
                "model.head");
  t.expect("MODEL.RETINANET.BBOX_REG_WEIGHTS", ones(), "deltas of anchors have the weight 1");
  put_norm(t, "MODEL.RETINANET.NORM", "model.head.norm");
  t.read("MODEL.RETINANET.IN_FEATURES");
  read_classes(t, "MODEL.RETINANET.NUM_CLASSES");
}

}  // namespace millrace::detectron2
