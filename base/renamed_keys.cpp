#include "millrace/base/renamed_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

#include "millrace/base/errors.h"
#include "millrace/base/options.h"

namespace millrace {
namespace {

/// How the value changes.
enum class As { it_is, seconds };

struct RenamedKey {
  std::string_view table;
  std::string_view was, is;
  As as = As::it_is;  // seconds: it was a number of them, and is a duration
};

constexpr std::string_view kLosses = "losses";

constexpr RenamedKey kRenamed[] = {
    // What chooses an implementation is called `type` everywhere.
    {"optimizer", "kind", "type"},
    {"schedule", "kind", "type"},
    {"schedule", "warmup_steps", "warmup"},  // their values: with_one_warmup
    {"schedule", "warmup_images", "warmup"},
    {"schedule", "warmup_epochs", "warmup"},
    {"data.stages", "use", "type"},
    {"data.stages", "type", "crop_type"},  // of random_crop
    {"data.sources", "use", "type"},
    {"callbacks", "use", "type"},
    // Times are durations.
    {"data", "source_timeout", "source_timeout", As::seconds},
    {"train", "rank_timeout", "rank_timeout", As::seconds},
    {"callbacks", "seconds", "interval", As::seconds},
    {"callbacks", "time_limit", "time_limit", As::seconds},
    {"callbacks", "step_limit", "step_limit", As::seconds},
    // The detectors' options.
    {"model", "name", "type"},
    {"model", "backbone", "backbone.type"},
    {"model", "width", "backbone.width"},
    {"model", "norm", "backbone.norm"},
    {"model", "freeze_at", "backbone.freeze_at"},
    {"model", "stride_in_1x1", "backbone.stride_in_1x1"},
    {"model", "deep_stem", "backbone.deep_stem"},
    {"model", "pool_shortcut", "backbone.avg_down"},
    {"model", "zero_init_residual", "backbone.zero_init_residual"},
    {"model", "norm_epsilon", "norm_eps"},
    {"model", "fpn_channels", "fpn.out_channels"},
    {"model", "fpn_norm", "fpn.norm"},
    {"model", "p6_from", "fpn.p6_from"},
    {"model", "box_offset", "boxes.offset"},
    {"model", "max_log_scale", "boxes.scale_clamp"},
    {"model", "anchor_sizes", "anchors.sizes"},
    {"model", "anchor_ratios", "anchors.aspect_ratios"},
    {"model", "anchor_cells", "anchors.rounding"},
    {"model", "anchor_stride", "anchors.stride"},
    {"model", "anchor_scales", "anchors.scales_per_octave"},
    {"model", "anchor_order", "anchors.order"},
    {"model", "anchor_boundary", "rpn.boundary_thresh"},
    {"model", "rpn_high", "rpn.fg_iou_thresh"},
    {"model", "rpn_low", "rpn.bg_iou_thresh"},
    {"model", "rpn_batch", "rpn.batch_size_per_image"},
    {"model", "rpn_positive", "rpn.positive_fraction"},
    {"model", "rpn_beta", "rpn.smooth_l1_beta"},
    {"model", "rpn_normalizer", "rpn.loss_normalizer"},
    {"model", "rpn_pre_nms_train", "rpn.pre_nms_top_n_train"},
    {"model", "rpn_pre_nms_test", "rpn.pre_nms_top_n_test"},
    {"model", "rpn_post_nms_train", "rpn.post_nms_top_n_train"},
    {"model", "rpn_post_nms_test", "rpn.post_nms_top_n_test"},
    {"model", "rpn_nms", "rpn.nms_thresh"},
    {"model", "rpn_rank", "rpn.rank_by"},
    {"model", "rpn_min_side", "rpn.min_size"},
    {"model", "roi_sampling_ratio", "roi.sampling_ratio"},
    {"model", "roi_aligned", "roi.aligned"},
    {"model", "level_epsilon", "roi.level_eps"},
    {"model", "level_epsilon_after_log", "roi.level_eps_after_log"},
    {"model", "level_canonical_size", "roi.canonical_box_size"},
    {"model", "roi_iou", "roi.fg_iou_thresh"},
    {"model", "roi_batch", "roi.batch_size_per_image"},
    {"model", "roi_positive", "roi.positive_fraction"},
    {"model", "roi_weights", "box.bbox_reg_weights"},
    {"model", "box_head", "box.type"},
    {"model", "box_norm", "box.norm"},
    {"model", "box_size", "box.pooler_resolution"},
    {"model", "box_channels", "box.fc_dim"},
    {"model", "class_agnostic", "box.cls_agnostic_bbox_reg"},
    {"model", "roi_loss", "box.bbox_reg_loss_type"},
    {"model", "roi_beta", "box.smooth_l1_beta"},
    {"model", "label_smoothing", "box.label_smoothing"},
    {"model", "mask_size", "mask.pooler_resolution"},
    {"model", "mask_channels", "mask.conv_dim"},
    {"model", "mask_convs", "mask.num_convs"},
    {"model", "mask_init", "mask.init_std"},
    {"model", "mask_target", "mask.target"},
    {"model", "mask_paste", "mask.paste"},
    {"model", "retina_high", "head.fg_iou_thresh"},
    {"model", "retina_low", "head.bg_iou_thresh"},
    {"model", "retina_convs", "head.num_convs"},
    {"model", "retina_norm", "head.norm"},
    {"model", "retina_prior", "head.prior_prob"},
    {"model", "focal_alpha", "head.focal_loss_alpha"},
    {"model", "focal_gamma", "head.focal_loss_gamma"},
    {"model", "retina_loss", "head.bbox_reg_loss_type"},
    {"model", "retina_beta", "head.smooth_l1_beta"},
    {"model", "retina_normalizer", "head.loss_normalizer"},
    {"model", "retina_candidates", "test.topk_candidates"},
    {"model", "score_threshold", "test.score_thresh"},
    {"model", "detection_nms", "test.nms_thresh"},
    {"model", "nms_kind", "test.nms_type"},
    {"model", "soft_nms_sigma", "test.soft_nms_sigma"},
    {"model", "detections", "test.detections_per_img"},
    {"model", "detection_min_side", "test.min_size"},
    {"model", "test_scales", "test.aug_scales"},
    {"model", "test_flip", "test.aug_flip"},
    // Losses, as they are published.
    {kLosses, "rpn_objectness", "loss_objectness"},
    {kLosses, "rpn_box", "loss_rpn_box_reg"},
    {kLosses, "box_class", "loss_classifier"},
    {kLosses, "box_regression", "loss_box_reg"},
    {kLosses, "mask", "loss_mask"},
    {kLosses, "classification", "loss_cls"},
    {kLosses, "regression", "loss_box_reg"},
};

std::string is_called_now(const RenamedKey& key) {
  const auto table = key.table == "model" ? "model." : "";  // of the others many have such keys
  return fmt::format("{0}{1} is called {0}{2} now", table, key.was, key.is);
}

std::optional<double> number(const Config& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value.data))
    return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&value.data)) return *real;
  return std::nullopt;
}

Config value_as(const Config& value, As as) {
  if (as == As::it_is) return value;
  if (const auto* text = std::get_if<std::string>(&value.data); text && text->empty())
    return {duration_in_words(0), value.origin};
  if (const auto seconds = number(value)) return {duration_in_words(*seconds), value.origin};
  return value;
}

/// A [schedule] with one length of the warm-up, "1000 steps", where it had three: epochs counted
/// before images, images before steps.
Config with_one_warmup(const Config& schedule) {
  auto result = without(schedule, {"warmup_steps", "warmup_images", "warmup_epochs"});
  for (const std::string unit : {"step", "image", "epoch"}) {
    const auto* value = schedule.find("warmup_" + unit + "s");
    const auto count = value ? number(*value) : std::nullopt;
    if (count && (*count > 0 || unit == "step"))
      result.set("warmup",
                 {fmt::format("{} {}{}", *count, unit, *count == 1 ? "" : "s"), value->origin});
  }
  return result;
}

/// The members of the table `name` with their new names. A table under an old key is new already.
Config renewed(const Config& table, std::string_view name) {
  Config result(Config::Table{}, table.origin);
  for (const auto& [key, value] : table.table()) {
    const auto row = std::ranges::find_if(kRenamed, [&, &was = key](const RenamedKey& one) {
      return one.table == name && one.was == was;
    });
    if (row == std::end(kRenamed) || value.is_table())
      result.set(key, value);
    else
      result.set_path(row->is, value_as(value, row->as));
  }
  return result;
}

void renew_each(Config* list, std::string_view name) {
  if (!list) return;
  if (auto* items = std::get_if<Config::Array>(&list->data))
    for (auto& item : *items)
      if (item.is_table() && item.find("use")) item = renewed(item, name);
}

}  // namespace

std::string renamed_key(std::string_view was, const std::function<bool(std::string_view)>& known) {
  for (const auto& one : kRenamed)
    if (one.table != kLosses && one.was == was && one.is != was && known(one.is))
      return is_called_now(one);
  return {};
}

std::string renamed_loss(std::string_view was) {
  if (was.size() > 2 && was[was.size() - 2] == '_' && was.back() >= '0' && was.back() <= '9') {
    const auto whole = renamed_loss(was.substr(0, was.size() - 2));  // of a stage of a cascade
    return whole.empty() ? "" : whole + "_stage" + was.back();
  }
  const auto slash = was.rfind('/') + 1;  // 0 if there is none
  for (const auto& one : kRenamed)
    if (one.table == kLosses && one.was == was.substr(slash))
      return std::string(was.substr(0, slash)).append(one.is);
  return {};
}

const Config* find_type(const Config& table, std::string_view was) {
  if (!table.is_table()) return nullptr;
  if (const auto* old = table.find(was))
    throw ConfigError(old->origin.text() + ": " +
                      is_called_now(*std::ranges::find_if(kRenamed, [&](const RenamedKey& key) {
                        return key.was == was && key.is == "type";
                      })));
  return table.find("type");
}

Config with_new_model_keys(Config model) {
  return model.is_table() && model.find("name") && !model.find("type") ? renewed(model, "model")
                                                                       : model;
}

Config with_new_keys(Config tree) {
  if (auto* schedule = tree.find("schedule"); schedule && schedule->is_table())
    *schedule = with_one_warmup(*schedule);
  if (auto* model = tree.find("model")) {
    if (!model->is_table() || !model->find("name") || model->find("type")) return tree;
    *model = with_new_model_keys(std::move(*model));
  }
  for (const auto* name : {"data", "train", "optimizer", "schedule"})
    if (auto* table = tree.find(name); table && table->is_table()) *table = renewed(*table, name);
  if (auto* data = tree.find("data"); data && data->is_table()) {
    renew_each(data->find("sources"), "data.sources");
    renew_each(data->find("stages"), "data.stages");
  }
  if (auto* callbacks = tree.find("callbacks"); callbacks && callbacks->is_table())
    for (auto& [name, table] : std::get<Config::Table>(callbacks->data))
      if (table.is_table()) table = renewed(table, "callbacks");
  return tree;
}

}  // namespace millrace
