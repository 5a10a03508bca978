#include <string>
#include <vector>

#include "millrace/migration/mmdetection/head_parts.h"
#include "millrace/migration/mmdetection/model_parts.h"
#include "millrace/migration/mmdetection/readers.h"

namespace millrace::mmdetection {

bool read_retina_head(Translation& t, const Layout& layout) {
  const std::string path = "model.bbox_head";
  must(t, path + ".type", {"RetinaHead"});
  for (const auto* key : {"num_classes", "in_channels"}) t.read(path + "." + key);
  t.expect(path + ".feat_channels", t.look("model.neck.out_channels").need(),
           "its convolutions have as many channels as the pyramid");
  t.copy(path + ".stacked_convs", "model.head.num_convs");
  const auto norm = norm_of(t, path);
  t.put("model.head.norm", words(norm), t.look(path));
  read_anchors(t, path);
  if (coder_weights(t, path) != std::vector<double>{1, 1, 1, 1})
    t.leave_out(t.look(path + ".bbox_coder.target_stds"), "deltas are not scaled");
  t.expect(path + ".loss_cls.type", literal(std::string("FocalLoss")), "the focal loss");
  t.expect(path + ".loss_cls.use_sigmoid", literal(true), "the focal loss of sigmoids");
  t.copy(path + ".loss_cls.gamma", "model.head.focal_loss_gamma");
  t.copy(path + ".loss_cls.alpha", "model.head.focal_loss_alpha");
  t.expect(path + ".loss_cls.loss_weight", literal(1.0), kNoLossWeights);
  read_box_loss(t, path, "model.head", /*giou=*/true);
  read_assigner(t, layout.train_cfg, "model.head.bg_iou_thresh", "model.head.fg_iou_thresh",
                /*notes_floor=*/false);
  t.expect(layout.train_cfg + ".sampler.type", literal(std::string("PseudoSampler")),
           "all anchors count");
  t.expect(layout.train_cfg + ".allowed_border", literal(std::int64_t{-1}), "all anchors count");
  note_debug(t, layout.train_cfg);
  t.copy(layout.test_cfg + ".nms_pre", "model.test.topk_candidates");
  t.copy(layout.test_cfg + ".min_bbox_size", "model.test.min_size");
  read_detections(t, layout.test_cfg);
  return norm != "none";
}

}  // namespace millrace::mmdetection
