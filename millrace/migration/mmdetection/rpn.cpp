#include <string>
#include <vector>

#include "millrace/migration/mmdetection/head_parts.h"
#include "millrace/migration/mmdetection/model_parts.h"
#include "millrace/migration/mmdetection/readers.h"

namespace millrace::mmdetection {
namespace {

/// `when`: "train" or "test".
void read_proposals(Translation& t, const std::string& path, const std::string& when) {
  if (const auto found = t.read(path + ".nms_pre"))
    t.put("model.rpn.pre_nms_top_n_" + when, found.real(), found);
  if (const auto found = t.read_any({path + ".max_per_img", path + ".max_num", path + ".nms_post"}))
    t.put("model.rpn.post_nms_top_n_" + when, found.real(), found);
  const auto nms = t.read_any({path + ".nms.iou_threshold", path + ".nms_thr"});
  t.expect(path + ".nms.type", literal(std::string("nms")), "proposals go through hard NMS");
  t.read(path + ".nms_post"), t.read(path + ".nms_across_levels");
  if (nms && when == "train") t.put("model.rpn.nms_thresh", nms.real(), nms);
  if (nms && when == "test") {
    const auto* set = t.ours().find_path("model.rpn.nms_thresh");
    if (!set || value_text(*set) != value_text({number(nms.real()), {}}))
      t.leave_out(nms, "one threshold in training and detection: model.rpn.nms_thresh");
  }
  if (const auto side = t.read(path + ".min_bbox_size")) {
    if (when == "test") t.put("model.rpn.min_size", side.real(), side);
  }
}

}  // namespace

void read_rpn(Translation& t, const Layout& layout) {
  const std::string path = "model.rpn_head";
  must(t, path + ".type", {"RPNHead"});
  t.read(path + ".in_channels");
  t.expect(path + ".feat_channels", t.look("model.neck.out_channels").need(),
           "its convolution has as many channels as the pyramid");
  t.expect(path + ".num_convs", literal(std::int64_t{1}), "one convolution");
  read_anchors(t, path);
  if (coder_weights(t, path) != std::vector<double>{1, 1, 1, 1})
    t.leave_out(t.look(path + ".bbox_coder.target_stds"), "deltas of proposals are not scaled");
  t.expect(path + ".loss_cls.type", literal(std::string("CrossEntropyLoss")),
           "objectness is learned with binary cross-entropy");
  t.expect(path + ".loss_cls.use_sigmoid", literal(true), "one score per anchor");
  t.expect(path + ".loss_cls.loss_weight", literal(1.0), kNoLossWeights);
  read_box_loss(t, path, "model.rpn", /*giou=*/false);
  t.set("model.rpn.loss_normalizer", words("sampled"), "as MMDetection divides the RPN's losses");
  read_assigner(t, layout.train_cfg + ".rpn", "model.rpn.bg_iou_thresh", "model.rpn.fg_iou_thresh",
                /*notes_floor=*/true);
  read_sampler(t, layout.train_cfg + ".rpn", "model.rpn");
  t.copy(layout.train_cfg + ".rpn.allowed_border", "model.rpn.boundary_thresh");
  note_debug(t, layout.train_cfg + ".rpn");
  read_proposals(t, layout.train_cfg + ".rpn_proposal", "train");
  read_proposals(t, layout.test_cfg + ".rpn", "test");
}

}  // namespace millrace::mmdetection
