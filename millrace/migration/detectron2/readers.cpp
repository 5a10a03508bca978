#include "millrace/migration/detectron2/readers.h"

#include <utility>

namespace millrace::detectron2 {

std::string must(Translation& t, const std::string& theirs,
                 const std::vector<std::string>& possible) {
  const auto found = t.read(theirs);
  const auto* text = std::get_if<std::string>(&found.need().data);
  return one_of(found, text ? *text : found.need().text(), possible);
}

void put_norm(Translation& t, const std::string& theirs, const std::string& ours) {
  const auto found = t.read(theirs);
  const auto name = found.text();
  const std::pair<const char*, const char*> names[] = {
      {"", "none"},          {"FrozenBN", "frozen_bn"}, {"BN", "bn"},
      {"SyncBN", "sync_bn"}, {"nnSyncBN", "sync_bn"},   {"GN", "gn"}};
  for (const auto& [their_name, our_name] : names)
    if (name == their_name) return t.put(ours, words(our_name), found);
  found.fail("a norm that is not known here: FrozenBN, BN, SyncBN, GN or none");
}

void read_classes(Translation& t, const std::string& path) {
  t.expect(path, literal(std::int64_t{80}),
           "the classes are those of the data set; data.classes names some of them");
}

void read_anchor_matching(Translation& t, const std::string& theirs, const std::string& table) {
  const auto iou = t.read(theirs + ".IOU_THRESHOLDS");
  const auto both = iou.reals();
  if (both.size() != 2) iou.fail("two thresholds are needed: background, foreground");
  t.put(table + ".bg_iou_thresh", both[0], iou);
  t.put(table + ".fg_iou_thresh", both[1], iou);
  t.expect(theirs + ".IOU_LABELS",
           literal(Value::List{literal(std::int64_t{0}), literal(std::int64_t{-1}),
                               literal(std::int64_t{1})}),
           "anchors are background, ignored, foreground");
}

void read_box_loss(Translation& t, const std::string& kind, const std::string& beta,
                   const std::string& table) {
  const auto loss = t.read(kind);
  const auto found_beta = t.read(beta);
  if (must(t, kind, {"smooth_l1", "giou"}) == "giou")
    t.put(table + ".bbox_reg_loss_type", words("giou"), loss);
  else
    t.put(table + ".smooth_l1_beta", found_beta.real(), found_beta);
}

Value ones() { return literal(Value::List(4, literal(1.0))); }

}  // namespace millrace::detectron2
