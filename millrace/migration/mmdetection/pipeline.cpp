#include "millrace/migration/mmdetection/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "millrace/migration/translation/data_tables.h"

namespace millrace::mmdetection {
namespace {

/// "scale" of 3.x, "img_scale" of 2.x: pairs of (long, short) sides, in any order.
struct Scales {
  Found from;
  std::vector<double> shorts, longs;
};

class Pipelines {
 public:
  explicit Pipelines(Translation& translation) : t_(translation) {}

  std::string read(const std::string& train, const std::string& test) {
    for (const auto& step : steps(train)) read_training(step);
    if (needs_stages_) put_stages();
    for (const auto& step : steps(test)) read_testing(step);
    return normalize_;
  }

 private:
  struct Step {
    std::string path, type;
  };

  std::vector<Step> steps(const std::string& path) {
    const auto list = t_.look(path);
    std::vector<Step> all;
    if (!list || !list.need().is_list()) return all;
    for (std::size_t i = 0; i < list.need().list().size(); ++i) {
      const auto at = fmt::format("{}.{}", path, i);
      const auto type = t_.read(at + ".type");
      if (!type) t_.leave_out(t_.look(at), "a step without a type");
      if (type) all.push_back({at, type.text()});
    }
    return all;
  }

  /// Steps without a choice: what they do is done here, too.
  static bool is_plain(const std::string& type) {
    static const std::set<std::string> plain = {"LoadImageFromFile", "DefaultFormatBundle",
                                                "Collect",           "PackDetInputs",
                                                "ImageToTensor",     "ToTensor",
                                                "DefaultFormat",     "FilterAnnotations"};
    return plain.contains(type);
  }

  void read_training(const Step& step) {
    if (is_plain(step.type)) {
      t_.read(step.path);
    } else if (step.type == "LoadAnnotations") {
      read_annotations(step);
    } else if (step.type == "Resize" || step.type == "RandomChoiceResize" ||
               step.type == "RandomResize") {
      read_resize(step);
    } else if (step.type == "RandomFlip") {
      read_flip(step);
    } else if (step.type == "RandomCrop") {
      read_crop(step);
    } else if (step.type == "Normalize") {
      normalize_ = step.path;
    } else if (step.type == "Pad") {
      read_pad(step);
    } else {
      t_.leave_out(t_.read(step.path), "[[data.stages]]: `trainer list` shows what there is");
    }
  }

  void read_annotations(const Step& step) {
    const auto masks = t_.read(step.path + ".with_mask");
    const auto bitmaps = t_.read(step.path + ".poly2mask");
    t_.read(step.path + ".with_bbox"), t_.read(step.path + ".backend_args");
    if (masks && masks.flag() && !(bitmaps && !bitmaps.flag()))
      t_.leave_out(bitmaps ? bitmaps : masks,
                   "polygons stay polygons, as with poly2mask=False; MMDetection resizes bitmaps");
    t_.leave_out_rest(step.path, "no counterpart is known");
  }

  Scales scales_of(const Step& step) {
    Scales scales{
        t_.read_any({step.path + ".scale", step.path + ".scales", step.path + ".img_scale"}),
        {},
        {}};
    if (!scales.from) return scales;
    const auto add = [&](const std::vector<double>& pair) {
      if (pair.size() != 2) scales.from.fail("a scale has two sides: (1333, 800)");
      scales.longs.push_back(std::max(pair[0], pair[1]));
      scales.shorts.push_back(std::min(pair[0], pair[1]));
    };
    const bool several = scales.from.need().is_list() && !scales.from.need().list().empty() &&
                         scales.from.need().list().front().is_list();
    if (several)
      for (const auto& one : scales.from.need().list())
        add(Found{&one, scales.from.path, one.place}.reals());
    else
      add(scales.from.reals());
    return scales;
  }

  void read_resize(const Step& step) {
    const auto scales = scales_of(step);
    const auto ratios = t_.read(step.path + ".ratio_range");
    const auto mode = t_.read(step.path + ".multiscale_mode");
    t_.read(step.path + ".resize_type"), t_.read(step.path + ".backend");
    t_.expect(step.path + ".keep_ratio", Value{true, {}}, "images keep their ratio of sides");
    t_.leave_out_rest(step.path, "no counterpart is known");
    if (!scales.from) return;
    if (ratios) {
      jitter_ = scales;
      jitter_range_ = ratios;
      needs_stages_ = true;
      order_.push_back("jitter");
      return;
    }
    if (!std::ranges::all_of(scales.longs, [&](double one) { return one == scales.longs.front(); }))
      t_.leave_out(scales.from, "the longer side has one bound: the first is taken");
    t_.put("data.short_side", scales.shorts, scales.from);
    t_.put("data.max_side", scales.longs.front(), scales.from);
    // 2.x chooses from a range unless it is told to choose among values.
    const bool range =
        scales.shorts.size() == 2 && (step.type == "RandomResize" ||
                                      (step.type == "Resize" && !(mode && mode.text() == "value")));
    if (range) t_.put("data.short_side_range", Config::Data(true), mode ? mode : scales.from);
    train_longest_ = scales.longs.front();
    train_shorts_ = scales.shorts;
    order_.push_back("resize_shortest_edge");
  }

  void read_flip(const Step& step) {
    const auto chance = t_.read_any({step.path + ".prob", step.path + ".flip_ratio"});
    const auto direction = t_.read(step.path + ".direction");
    t_.leave_out_rest(step.path, "no counterpart is known");
    if (chance) t_.put("data.flip", chance.real(), chance);
    if (direction) {
      const auto* text = std::get_if<std::string>(&direction.need().data);
      if (text && *text == "vertical")
        flip_vertical_ = needs_stages_ = true;
      else if (!text || *text != "horizontal")
        t_.leave_out(direction, "a stage flip is horizontal or vertical: two of them do both");
    }
    if (direction) flip_from_ = direction;
    order_.push_back("flip");
  }

  void read_crop(const Step& step) {
    const auto kind = t_.read(step.path + ".crop_type"), size = t_.read(step.path + ".crop_size");
    t_.read(step.path + ".recompute_bbox"), t_.read(step.path + ".allow_negative_crop");
    t_.read(step.path + ".bbox_clip_border");
    t_.leave_out_rest(step.path, "no counterpart is known");
    if (!size) return;
    crop_ = size;
    crop_kind_ = kind ? kind.text() : "absolute";
    needs_stages_ = true;
    order_.push_back("crop");
  }

  void read_pad(const Step& step) {
    const auto divisor = t_.read(step.path + ".size_divisor"), size = t_.read(step.path + ".size");
    t_.read(step.path + ".pad_val");
    if (divisor) t_.put("data.divisor", divisor.real(), divisor);
    if (size && size.reals().size() != 2) size.fail("two sides are needed");
    t_.leave_out_rest(step.path, "no counterpart is known");
  }

  /// The list of stages, in their order. A jitter with a crop of its size is large_scale_jitter.
  void put_stages() {
    Config::Array stages;
    const Origin usual{"as every pipeline here", 0, 0};
    add_stage(stages, "read", usual), add_stage(stages, "decode", usual);
    const bool has_crop = static_cast<bool>(crop_), has_jitter = static_cast<bool>(jitter_.from);
    for (const auto& type : order_) {
      if (type == "jitter") {
        put_jitter(add_stage(stages, "large_scale_jitter", origin_of(jitter_.from)), has_crop);
      } else if (type == "crop") {
        if (!has_jitter) put_crop(add_stage(stages, "random_crop", origin_of(crop_)));
      } else if (type == "flip" && flip_vertical_) {
        add_stage(stages, "flip", origin_of(flip_from_))
            .set("direction", {std::string("vertical"), origin_of(flip_from_)});
      } else {
        add_stage(stages, type, usual);
      }
    }
    add_stage(stages, "group_by_aspect_ratio", usual), add_stage(stages, "pad", usual);
    const auto from = has_jitter ? jitter_.from : has_crop ? crop_ : flip_from_;
    t_.put("data.stages", Config::Data(std::move(stages)), from);
  }

  void put_jitter(Config& table, bool has_crop) {
    const auto range = jitter_range_.reals();
    if (range.size() != 2) jitter_range_.fail("two factors are needed");
    const auto sides = jitter_.from.reals();
    const std::pair<const char*, double> keys[] = {{"min_scale", range[0]},
                                                   {"max_scale", range[1]},
                                                   {"width", sides[0]},
                                                   {"height", sides[1]}};
    for (const auto& [key, value] : keys)
      table.set(
          key, {number(value), origin_of(std::string_view(key).ends_with("scale") ? jitter_range_
                                                                                  : jitter_.from)});
    if (!has_crop || crop_.reals() != sides)
      t_.leave_out(jitter_range_,
                   "the result is cut or padded to one size, as by a crop of that size");
  }

  void put_crop(Config& table) {
    table.set("crop_type", {crop_kind_, origin_of(crop_)});
    const auto sides = crop_.reals();
    if (sides.size() != 2) crop_.fail("two sides are needed");
    set_crop_size(table, crop_kind_, sides, origin_of(crop_));
  }

  void read_testing(const Step& step) {
    if (step.type == "MultiScaleFlipAug") return read_test_views(step);
    if (step.type == "Resize") return put_test_sizes(scales_of(step), step);
    t_.read(step.path);  // loads, normalises, packs, as in training
  }

  void put_test_sizes(const Scales& scales, const Step& step) {
    t_.expect(step.path + ".keep_ratio", Value{true, {}}, "images keep their ratio of sides");
    if (!scales.from) return;
    if (train_shorts_ != scales.shorts)
      t_.put("data.test_short_side", scales.shorts.front(), scales.from);
    if (train_longest_ != scales.longs.front())
      t_.put("data.test_max_side", scales.longs.front(), scales.from);
  }

  /// 2.x: one scale or several, mirrored or not.
  void read_test_views(const Step& step) {
    auto scales = scales_of(step);
    const auto flip = t_.read(step.path + ".flip");
    t_.read(step.path + ".transforms"), t_.read(step.path + ".flip_direction");
    if (flip && flip.flag()) t_.put("model.test.aug_flip", Config::Data(true), flip);
    if (scales.shorts.size() > 1) {
      const double most = std::ranges::max(scales.shorts);
      std::vector<double> shares;
      for (const double one : scales.shorts) shares.push_back(one / most);
      t_.put("model.test.aug_scales", shares, scales.from, fmt::format("shares of {}", most));
      scales.shorts = {most};
      scales.longs = {std::ranges::max(scales.longs)};
    }
    put_test_sizes(scales, step);
  }

  Translation& t_;
  std::string normalize_;
  std::vector<std::string> order_;  // of the steps that are stages here
  bool needs_stages_ = false, flip_vertical_ = false;
  Scales jitter_;
  Found jitter_range_, crop_, flip_from_;
  std::string crop_kind_;
  double train_longest_ = 0;
  std::vector<double> train_shorts_;
};

}  // namespace

std::string read_pipelines(Translation& translation, const std::string& train,
                           const std::string& test) {
  return Pipelines(translation).read(train, test);
}

}  // namespace millrace::mmdetection
