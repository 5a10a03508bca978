#include <string>
#include <utility>

#include "millrace/migration/detectron2/parts.h"
#include "millrace/migration/detectron2/readers.h"
#include "millrace/migration/translation/data_tables.h"

namespace millrace::detectron2 {
namespace {

void read_flip_and_crop(Translation& t) {
  const auto flip = t.read("INPUT.RANDOM_FLIP");
  const auto direction = must(t, "INPUT.RANDOM_FLIP", {"horizontal", "vertical", "none"});
  const auto crop = t.read("INPUT.CROP.ENABLED");
  const auto kind = t.read("INPUT.CROP.TYPE");
  const auto size = t.read("INPUT.CROP.SIZE");
  if (direction == "none") t.put("data.flip", 0.0, flip);
  if (!crop.flag() && direction != "vertical") return;
  Config::Array stages;
  const auto origin = origin_of(crop.flag() ? crop : flip);
  add_stage(stages, "read", origin), add_stage(stages, "decode", origin);
  if (crop.flag()) {
    auto& table = add_stage(stages, "random_crop", origin);
    must(t, "INPUT.CROP.TYPE", {"relative", "relative_range", "absolute", "absolute_range"});
    table.set("crop_type", {kind.text(), origin_of(kind)});
    const auto sides = size.reals();
    if (sides.size() != 2) size.fail("two sizes are needed");
    set_crop_size(table, kind.text(), sides, origin_of(size));
    table.set("keep_object", {false, {"as detectron2's crops", 0, 0}});
  }
  add_stage(stages, "resize_shortest_edge", origin);
  if (direction != "none") {
    auto& table = add_stage(stages, "flip", origin_of(flip));
    if (direction == "vertical") table.set("direction", {words("vertical"), origin_of(flip)});
  }
  add_stage(stages, "group_by_aspect_ratio", origin), add_stage(stages, "pad", origin);
  t.put("data.stages", Config::Data(std::move(stages)), crop.flag() ? crop : flip);
}

}  // namespace

void read_input(Translation& t, bool has_views) {
  const auto order = must(t, "INPUT.FORMAT", {"BGR", "RGB"});
  t.put("model.pixel_order", words(order == "BGR" ? "bgr" : "rgb"), t.read("INPUT.FORMAT"));
  t.copy("MODEL.PIXEL_MEAN", "model.pixel_mean");
  t.copy("MODEL.PIXEL_STD", "model.pixel_std");
  t.copy("INPUT.MIN_SIZE_TRAIN", "data.short_side");
  t.copy("INPUT.MAX_SIZE_TRAIN", "data.max_side");
  const auto sizes = t.read("INPUT.MIN_SIZE_TRAIN");
  t.put("data.resize_style", words("detectron2"), sizes);
  const auto sampling = t.read("INPUT.MIN_SIZE_TRAIN_SAMPLING");
  if (must(t, "INPUT.MIN_SIZE_TRAIN_SAMPLING", {"choice", "range"}) == "range")
    t.put("data.short_side_range", Config::Data(true), sampling);
  const auto test_size = t.read("INPUT.MIN_SIZE_TEST");
  const auto test_most = t.read("INPUT.MAX_SIZE_TEST");
  if (test_size.real() == 0)
    t.leave_out(test_size, "images are always resized when detecting: set data.test_short_side");
  else if (!has_views && (sizes.reals().size() > 1 || sizes.reals().front() != test_size.real()))
    t.put("data.test_short_side", test_size.real(), test_size);
  if (!has_views && test_most.real() != t.look("INPUT.MAX_SIZE_TRAIN").real())
    t.put("data.test_max_side", test_most.real(), test_most);
  t.expect("INPUT.MASK_FORMAT", literal(std::string("polygon")),
           "polygons stay polygons and run lengths stay run lengths");
  read_flip_and_crop(t);
}

}  // namespace millrace::detectron2
