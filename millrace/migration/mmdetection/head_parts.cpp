#include "millrace/migration/mmdetection/head_parts.h"

#include <cmath>
#include <cstdint>

#include "millrace/migration/mmdetection/readers.h"
#include "millrace/migration/translation/anchors_of.h"

namespace millrace::mmdetection {

void read_anchors(Translation& t, const std::string& head) {
  const auto path = head + ".anchor_generator";
  must(t, path + ".type", {"AnchorGenerator"});
  const auto strides = t.read(path + ".strides");
  const auto scales = t.read(path + ".scales");
  const auto base = t.read(path + ".octave_base_scale");
  const auto octaves = t.read(path + ".scales_per_octave");
  if (!strides || (!scales && !(base && octaves)))
    t.look(head).fail("anchor_generator needs strides and scales");
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
  put_anchor_sizes(t, levels, scales ? scales : base, "times the strides");
  if (factors.size() > 1)
    t.set("model.anchors.order", words("ratio"), "as MMDetection's AnchorGenerator counts them");
  t.copy(path + ".ratios", "model.anchors.aspect_ratios");
  t.expect(path + ".center_offset", literal(0.0), "anchors stand at the corners of cells");
  t.expect(path + ".scale_major", literal(true), "anchors go by ratio and then by scale");
  if (const auto sizes = t.read(path + ".base_sizes"))
    t.leave_out(sizes, "sizes are scales times strides");
}

std::vector<double> coder_weights(Translation& t, const std::string& head) {
  const auto path = head + ".bbox_coder";
  t.expect(path + ".type", literal(std::string("DeltaXYWHBBoxCoder")), "boxes are dx dy dw dh");
  t.expect(path + ".target_means", literal(Value::List(4, literal(0.0))), "the means are 0");
  t.expect(path + ".clip_border", literal(true), "boxes are cut at the image's border");
  const auto deviations = t.read(path + ".target_stds");
  if (!deviations) return {1, 1, 1, 1};
  std::vector<double> weights;
  for (const double one : deviations.reals()) {
    if (one <= 0) deviations.fail("deviations are above 0");
    const double weight = 1 / one;  // 1 / 0.1 is 10
    weights.push_back(std::abs(weight - std::round(weight)) < 1e-9 ? std::round(weight) : weight);
  }
  return weights;
}

void read_box_loss(Translation& t, const std::string& head, const std::string& table, bool giou) {
  const auto path = head + ".loss_bbox";
  const auto type = t.read(path + ".type");
  if (!type) return;
  t.expect(path + ".loss_weight", literal(1.0), kNoLossWeights);
  const auto beta = t.read(path + ".beta");
  if (type.text() == "L1Loss")
    t.put(table + ".smooth_l1_beta", 0.0, type);
  else if (type.text() == "SmoothL1Loss" && beta)
    t.put(table + ".smooth_l1_beta", beta.real(), beta);
  else if (type.text() == "SmoothL1Loss")
    t.put(table + ".smooth_l1_beta", 1.0, type, "its default");
  else if (type.text() == "GIoULoss" && giou)
    t.put(table + ".bbox_reg_loss_type", words("giou"), type);
  else
    t.leave_out(type, giou ? "boxes are learned with (smooth) L1 or GIoU"
                           : "proposals are learned with (smooth) L1");
  t.leave_out_rest(path, "without a counterpart in the losses of boxes");
}

void read_assigner(Translation& t, const std::string& above, const std::string& background,
                   const std::string& foreground, bool notes_floor) {
  const auto path = above + ".assigner";
  t.expect(path + ".type", literal(std::string("MaxIoUAssigner")), "boxes are matched by IoU");
  const auto low = t.read(path + ".neg_iou_thr"), high = t.read(path + ".pos_iou_thr");
  if (high) t.put(foreground, high.real(), high);
  if (low && !background.empty()) t.put(background, low.real(), low);
  if (low && high && background.empty() && low.real() != high.real())
    t.leave_out(low, "regions are foreground or background: one threshold");
  const auto floor = t.read(path + ".min_pos_iou");
  if (floor && notes_floor)
    t.leave_out(floor,
                "each object's best anchor is foreground, however small its IoU, as in "
                "detectron2");
  const auto poor = t.read(path + ".match_low_quality");
  if (poor && background.empty() && poor.flag())
    t.leave_out(poor, "a region belongs to the object that it overlaps most");
  t.expect(path + ".ignore_iof_thr", literal(std::int64_t{-1}), "crowds are not trained on");
  t.read(path + ".gpu_assign_thr"), t.read(path + ".iou_calculator");
}

void read_sampler(Translation& t, const std::string& above, const std::string& table) {
  const auto path = above + ".sampler";
  t.expect(path + ".type", literal(std::string("RandomSampler")), "samples are drawn at random");
  t.copy(path + ".num", table + ".batch_size_per_image");
  t.copy(path + ".pos_fraction", table + ".positive_fraction");
  t.expect(path + ".neg_pos_ub", literal(std::int64_t{-1}), "background fills what is left");
  t.expect(path + ".add_gt_as_proposals", literal(table == "model.roi"),
           "ground truth is among the regions, not among the anchors");
}

void note_debug(Translation& t, const std::string& above) {
  t.read(above + ".debug");
  t.expect(above + ".pos_weight", literal(std::int64_t{-1}), kNoLossWeights);
}

void read_detections(Translation& t, const std::string& path) {
  t.copy(path + ".score_thr", "model.test.score_thresh");
  t.copy(path + ".max_per_img", "model.test.detections_per_img");
  const auto type = t.read(path + ".nms.type");
  const auto overlap = t.read_any({path + ".nms.iou_threshold", path + ".nms.iou_thr"});
  const auto method = text_or(t, path + ".nms.method", "linear");
  const auto sigma = t.read(path + ".nms.sigma");
  if (!type || type.text() == "nms") {
    if (overlap) t.put("model.test.nms_thresh", overlap.real(), overlap);
  } else if (type.text() == "soft_nms" && (method == "linear" || method == "gaussian")) {
    t.put("model.test.nms_type", words(method), type);
    if (method == "linear" && overlap) t.put("model.test.nms_thresh", overlap.real(), overlap);
    if (method == "gaussian" && sigma) t.put("model.test.soft_nms_sigma", sigma.real(), sigma);
    if (const auto least = t.read(path + ".nms.min_score"))
      t.leave_out(least, "what loses its score below model.test.score_thresh goes");
  } else {
    t.leave_out(type, "model.test.nms_type is hard, linear or gaussian");
  }
}

}  // namespace millrace::mmdetection
