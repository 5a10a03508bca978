#include "millrace/cli/inspect/remarks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "millrace/base/text.h"

namespace millrace::cli {
namespace {

using coco::Severity::warning;

constexpr double kTinyPixels = kSizeBounds[0];  // smaller objects are detected badly

/// Returns the fraction of the values for which `holds` is true; 0 if there are no values.
double share_if(const std::vector<double>& values, const auto& holds) {
  if (values.empty()) return 0;
  return static_cast<double>(std::ranges::count_if(values, holds)) /
         static_cast<double>(values.size());
}

/// Returns the median of the images' resize factors.
double median_scale(const SeenData& data) {
  std::vector<double> scales;
  for (const auto& image : data.images)
    scales.push_back(std::sqrt(double{1} * image.seen.area() / std::max(1, image.original.area())));
  return quantile(scales, .5);
}

/// Returns a length as "32" or "4.5".
std::string pixel_text(double pixels) {
  return fmt::format("{:.{}f}", pixels, pixels < 10 ? 1 : 0);
}

/// Returns a list as "[16, 32.5]".
std::string list_text(const std::vector<double>& values) {
  return fmt::format("[{:.4g}]", fmt::join(values, ", "));
}

/// Builds the remarks on one training.
class Remarks {
 public:
  Remarks(const SplitView& learned, const SplitView& photos, const SplitView* val,
          const DataContext& context)
      : train_(learned), photos_(photos), val_(val), context_(context) {}

  std::vector<Remark> all() {
    if (train_.data.objects.size() == crowd_count(train_.data)) {
      warn("no-objects", "Nothing to learn: no image has an object that is not a crowd.");
      return std::move(all_);
    }
    anchors();
    sizes();
    ratios();
    density();
    scales();
    classes();
    against_val();
    unread();
    return std::move(all_);
  }

 private:
  void warn(std::string name, std::string text) {
    all_.push_back({std::move(name), std::move(text), warning});
  }
  void note(std::string name, std::string text) {
    all_.push_back({std::move(name), std::move(text)});
  }

  void anchors() {
    if (train_.coverage.empty()) return;
    const auto sums = summary(train_.data, train_.coverage);
    const double below = 1 - sums.all.share(MatchKind::foreground);
    auto text = fmt::format(
        "{} of the objects have no anchor with an IoU of {:g} or more ({}), and {} are not learned "
        "by any anchor",
        percent_text(below), context_.foreground, context_.foreground_key,
        percent_text(sums.all.share(MatchKind::nothing)));
    std::vector<double> missed;  // sizes of objects without a foreground anchor
    for (std::size_t i = 0; i < train_.coverage.size(); ++i)
      if (train_.coverage[i].match != MatchKind::foreground && !train_.data.objects[i].crowd)
        missed.push_back(train_.data.objects[i].size());
    if (!missed.empty() && !context_.anchor_sizes.empty())
      text += fmt::format(
          ": the anchor sizes are {} pixels, and half of those objects are smaller than {}",
          list_text(context_.anchor_sizes), pixel_text(quantile(missed, .5)));
    constexpr double kFewLearned = 0.3, kManyLost = 0.02;  // fractions of the objects
    const bool is_bad = 1 - below < kFewLearned || sums.all.share(MatchKind::nothing) > kManyLost;
    if (const auto& better = context_.better)
      all_.push_back(
          {"anchor-sizes",
           text + fmt::format(". With model.anchors.sizes = {}, {} would have one instead of {}. "
                              "Weights trained with other anchors must relearn this.",
                              list_text(better->sizes),
                              percent_text(better->chosen.all.share(MatchKind::foreground)),
                              percent_text(better->published.all.share(MatchKind::foreground))),
           is_bad ? warning : coco::Severity::note});
    else
      note("anchor-sizes", text +
                               ". No other sizes, each twice the previous one, give more objects "
                               "such an anchor without leaving others below an IoU of 0.5.");
  }

  void sizes() {
    const auto sizes = values(train_.data, &SeenObject::size);
    const double tiny = share_if(sizes, [](double size) { return size < kTinyPixels; });
    if (tiny < 0.1) return;
    warn("tiny-objects",
         fmt::format("{} of the objects are smaller than {:.0f} pixels in the detector's input "
                     "({}), and such objects are detected poorly; {}.",
                     percent_text(tiny), kTinyPixels, train_.seen,
                     train_.is_sampled
                         ? "configure the stages to make larger images, or to mix fewer of them"
                         : "raise data.short_side and data.max_side if memory allows, or train on "
                           "crops of the images (stage random_crop)"));
  }

  void ratios() {
    if (context_.anchor_ratios.empty()) return;
    constexpr double kFar = 1.5;  // beyond this factor, an anchor's IoU is below 2 / 3
    const auto ratios = values(train_.data, &SeenObject::ratio);
    const auto [low, high] = std::ranges::minmax(context_.anchor_ratios);
    const double flat = share_if(ratios, [&](double ratio) { return ratio < low / kFar; });
    const double tall = share_if(ratios, [&](double ratio) { return ratio > high * kFar; });
    if (flat + tall < 0.1) return;
    auto wanted = context_.anchor_ratios;
    if (flat > 0.05) wanted.insert(wanted.begin(), low / 2);
    if (tall > 0.05) wanted.push_back(high * 2);
    if (wanted.size() == context_.anchor_ratios.size()) return;
    constexpr double kMany = 0.25;  // fraction of the objects
    all_.push_back({"long-objects",
                    fmt::format("{} of the objects are flatter or taller than the anchors ({}) by "
                                "more than half; try model.anchors.aspect_ratios = {}.",
                                percent_text(flat + tall), list_text(context_.anchor_ratios),
                                list_text(wanted)),
                    flat + tall > kMany ? warning : coco::Severity::note});
  }

  void density() {
    const auto counts = objects_per_image(train_.data);
    const auto most = static_cast<double>(context_.max_detections);
    const auto over = std::ranges::count_if(counts, [&](double count) { return count > most; });
    if (most > 0 && over > 0)
      warn("many-objects",
           fmt::format("{} more objects than model.test.detections_per_img = {} (up to {:.0f}); "
                       "raise it, or the rest is missed.",
                       counted(over, "image has", "images have"), context_.max_detections,
                       std::ranges::max(counts)));
    if (const auto crowds = crowd_count(train_.data); crowds > 0)
      note("crowds",
           fmt::format("{} not learned; detections there count neither as correct nor as wrong.",
                       counted(crowds, "crowd region is", "crowd regions are")));
  }

  void scales() {
    if (train_.is_sampled || context_.short_side == 0) return;
    const double median = median_scale(train_.data);
    if (median > 1.3)
      note("enlarged",
           fmt::format(
               "Half of the images are enlarged {:.1f} times or more. That helps to detect small "
               "objects but takes time; if objects are large, data.short_side can be less than {}.",
               median, context_.short_side));
    if (median < 0.4)
      note("shrunk", fmt::format("Half of the images are shrunk to {:.2f} of their size or less: "
                                 "small objects are lost; raise data.short_side (now {}), or train "
                                 "on crops.",
                                 median, context_.short_side));
  }

  void classes() {
    const auto counts = class_counts(photos_.data);
    std::vector<std::size_t> order;
    std::vector<std::string> none, few;
    constexpr std::uint64_t kFew = 10;  // objects
    for (std::size_t k = 0; k < counts.size(); ++k) {
      if (counts[k].objects == 0)
        none.push_back(photos_.data.classes[k]);
      else
        order.push_back(k);
      if (counts[k].objects > 0 && counts[k].objects < kFew) few.push_back(photos_.data.classes[k]);
    }
    const auto first = [](std::vector<std::string> names) {
      constexpr std::size_t kShown = 6;
      const auto more = names.size() > kShown ? names.size() - kShown : 0;
      names.resize(names.size() - more);
      return joined(names) + (more > 0 ? fmt::format(" and {} more", more) : "");
    };
    if (!none.empty())
      warn("classes-without-objects",
           fmt::format("{} no object to learn from: {}.",
                       counted(none.size(), "class has", "classes have"), first(none)));
    if (!few.empty())
      warn("rare-classes",
           fmt::format("{} fewer than {} objects: {}. The source repeat_factor "
                       "shows rare classes more often.",
                       counted(few.size(), "class has", "classes have"), kFew, first(few)));
    if (order.size() < 2) return;
    const auto [rare, often] =
        std::ranges::minmax(order, {}, [&](std::size_t k) { return counts[k].objects; });
    note("class-balance", fmt::format("'{}' has {}, '{}' {}.", photos_.data.classes[often],
                                      counted(counts[often].objects, "object"),
                                      photos_.data.classes[rare], counts[rare].objects));
  }

  void against_val() {
    if (!val_ || train_.is_sampled) return;
    const auto own = quantile(values(train_.data, &SeenObject::size), .5);
    const auto others = quantile(values(val_->data, &SeenObject::size), .5);
    if (own <= 0 || others <= 0) return;
    if (const double times = others / own; times > 1.5 || times < 1 / 1.5)
      warn("validation-differs",
           fmt::format(
               "Objects of {} are {:.1f} times as large as those of {} (medians {} and {} pixels, "
               "in the detector's input): the split or data.test_short_side differs.",
               val_->name, times, train_.name, pixel_text(others), pixel_text(own)));
  }

  void unread() {
    if (photos_.data.unreadable > 0)
      warn("unreadable",
           fmt::format("{} could not be read (not counted here); see `trainer doctor`.",
                       counted(photos_.data.unreadable, "sample")));
    if (photos_.data.without_size > 0)
      note("without-size",
           fmt::format("The size of {} is known only after decoding (not counted here).",
                       counted(photos_.data.without_size, "image")));
  }

  const SplitView& train_;
  const SplitView& photos_;
  const SplitView* val_;
  const DataContext& context_;
  std::vector<Remark> all_;
};

}  // namespace

std::vector<Remark> remarks(const SplitView& learned, const SplitView& photos, const SplitView* val,
                            const DataContext& context) {
  return Remarks(learned, photos, val, context).all();
}

}  // namespace millrace::cli
