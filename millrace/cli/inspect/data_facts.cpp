#include "millrace/cli/inspect/data_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "millrace/base/text.h"

namespace millrace::cli {
namespace {

constexpr double kTinyPixels = kSizeBounds[0];

std::vector<double> of_images(const SeenData& data, double (*of)(const SeenImage&)) {
  std::vector<double> result;
  for (const auto& image : data.images) result.push_back(of(image));
  return result;
}

double longer_side(const SeenImage& image) {
  return std::max(image.original.width, image.original.height);
}

double scale(const SeenImage& image) {
  return std::sqrt(double{1} * image.seen.area() / std::max(1, image.original.area()));
}

double share_if(const std::vector<double>& values, const auto& holds) {
  if (values.empty()) return 0;
  return static_cast<double>(std::ranges::count_if(values, holds)) /
         static_cast<double>(values.size());
}

/// "3.1 %"
std::string percent(double share) {
  const double value = 100 * share;
  return fmt::format("{:.{}f} %", value, value > 0 && value < 10 ? 1 : 0);
}

std::string pixels(double value) { return fmt::format("{:.{}f}", value, value < 10 ? 1 : 0); }

/// "[16, 32.5]", as TOML has it.
std::string list_text(const std::vector<double>& values) {
  std::vector<std::string> texts;
  for (const double value : values) texts.push_back(fmt::format("{:.4g}", value));
  return "[" + joined(texts) + "]";
}

/// The bins up to the one that has the highest value.
Distribution distribution(std::string id, std::string title, std::string unit,
                          const std::vector<double>& values, std::vector<double> edges) {
  const double most = values.empty() ? 0 : std::ranges::max(values);
  while (edges.size() > 2 && edges.back() >= most) edges.pop_back();
  return {.id = std::move(id),
          .title = std::move(title),
          .unit = std::move(unit),
          .histogram = histogram(values, std::move(edges)),
          .most = most,
          .median = quantile(values, 0.5)};
}

std::string of_sizes(const SplitView& split, const std::vector<double>& sizes) {
  if (sizes.empty()) return "There is no object.";
  auto text = fmt::format(
      "Half of the objects are smaller than {} pixels and one in ten smaller than {}, at the size "
      "that the detector sees ({}).",
      pixels(quantile(sizes, .5)), pixels(quantile(sizes, .1)), split.seen);
  const double tiny = share_if(sizes, [](double size) { return size < kTinyPixels; });
  if (tiny >= 0.001)
    text += fmt::format(
        " {} are below {:.0f} pixels: a stride of 4 leaves them less than 4 x 4 places.",
        percent(tiny), kTinyPixels);
  return text;
}

std::string of_ratios(const std::vector<double>& ratios, const DataContext& context) {
  if (ratios.empty()) return "There is no object.";
  auto text = fmt::format(
      "Height / width: one in ten is below {:.2f}, one in ten above {:.2f}; 1 is a square.",
      quantile(ratios, .1), quantile(ratios, .9));
  if (!context.anchor_ratios.empty())
    text += fmt::format(" The anchors have {}.", list_text(context.anchor_ratios));
  return text;
}

std::string of_counts(const std::vector<double>& counts) {
  double sum = 0;
  for (const double count : counts) sum += count;
  auto text = fmt::format(
      "{:.1f} objects an image on average; half of the images have {:.0f} or fewer, the fullest "
      "{:.0f}.",
      sum / std::max<double>(1, static_cast<double>(counts.size())), quantile(counts, .5),
      std::ranges::max(counts));
  if (const auto none = std::ranges::count(counts, 0.); none > 0)
    text += fmt::format(" {} without any.", counted(none, "image"));
  return text;
}

std::string of_images_sizes(const SplitView& split) {
  const auto scales = of_images(split.data, scale);
  const auto [least, most] = std::ranges::minmax(scales);
  if (split.is_sampled) return "Of the images that the drawn batches are made of.";
  return fmt::format(
      "Training sees them at {:.2f} to {:.2f} times their size, half of them at {:.2f} times or "
      "less ({}).",
      least, most, quantile(scales, .5), split.seen);
}

std::string of_coverage(const CoverageSummary& sums, const DataContext& context) {
  const auto& all = sums.all;
  return fmt::format(
      "{} of the objects have an anchor with an IoU of at least {:g} ({}); {} are learned by their "
      "best anchors, which are below that, and {} by none. Taken as proposals, the anchors would "
      "find {} of the objects at an IoU of 0.5 and {} at 0.7.",
      percent(all.share(Reach::foreground)), context.foreground, context.foreground_key,
      percent(all.share(Reach::low_quality)), percent(all.share(Reach::nothing)),
      percent(all.recall(0)), percent(all.recall(1)));
}

std::vector<double> best_ious(const SplitView& split) {
  std::vector<double> result;
  for (std::size_t i = 0; i < split.coverage.size(); ++i)
    if (!split.data.objects[i].crowd) result.push_back(double{split.coverage[i].best_iou});
  return result;
}

/// Sentences about one training.
class Remarks {
 public:
  Remarks(const SplitView& learned, const SplitView& photos, const SplitView* val,
          const DataContext& context)
      : train_(learned), photos_(photos), val_(val), context_(context) {}

  std::vector<Remark> all() {
    if (train_.data.objects.size() == crowd_count(train_.data)) {
      warn("no-objects", "There is nothing to learn: no image has an object that is no crowd.");
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
    all_.push_back({std::move(name), std::move(text), true});
  }
  void note(std::string name, std::string text) {
    all_.push_back({std::move(name), std::move(text), false});
  }

  void anchors() {
    if (train_.coverage.empty()) return;
    const auto sums = summary(train_.data, train_.coverage);
    const double below = 1 - sums.all.share(Reach::foreground);
    auto text = fmt::format(
        "{} of the objects have no anchor with an IoU of {:g} or more ({}), and {} are learned by "
        "no anchor at all",
        percent(below), context_.foreground, context_.foreground_key,
        percent(sums.all.share(Reach::nothing)));
    std::vector<double> missed;  // sizes of objects below
    for (std::size_t i = 0; i < train_.coverage.size(); ++i)
      if (train_.coverage[i].reach != Reach::foreground && !train_.data.objects[i].crowd)
        missed.push_back(train_.data.objects[i].size());
    if (!missed.empty() && !context_.anchor_sizes.empty())
      text +=
          fmt::format(": the anchors' sizes are {} pixels, and half of those objects are below {}",
                      list_text(context_.anchor_sizes), pixels(quantile(missed, .5)));
    constexpr double kFewLearned = 0.3, kManyLost = 0.02;  // shares of the objects
    const bool is_bad = 1 - below < kFewLearned || sums.all.share(Reach::nothing) > kManyLost;
    if (context_.advice)
      all_.push_back(
          {"anchor-sizes",
           text +
               fmt::format(
                   ". With model.anchors.sizes = {}, {} would have one instead of {}. Weights that "
                   "were trained with other anchors learn these anew.",
                   list_text(context_.advice->sizes), percent(context_.advice->foreground_then),
                   percent(context_.advice->foreground_now)),
           is_bad});
    else
      note("anchor-sizes", text +
                               ". No other sizes, each twice the last, give one to more objects "
                               "without leaving others below half.");
  }

  void sizes() {
    const auto sizes = values(train_.data, &SeenObject::size);
    const double tiny = share_if(sizes, [](double size) { return size < kTinyPixels; });
    if (tiny < 0.1) return;
    warn("tiny-objects",
         fmt::format("{} of the objects are below {:.0f} pixels when the detector sees them ({}), "
                     "and such are found badly: {}.",
                     percent(tiny), kTinyPixels, train_.seen,
                     train_.is_sampled
                         ? "let the stages make larger images, or mix fewer photos"
                         : "raise data.short_side and data.max_side as far as memory allows, or "
                           "train on crops of the photos (stage random_crop)"));
  }

  void ratios() {
    if (context_.anchor_ratios.empty()) return;
    constexpr double kFar = 1.5;  // beyond the outermost ratio, an anchor's IoU falls below 2 / 3
    const auto ratios = values(train_.data, &SeenObject::ratio);
    const auto [low, high] = std::ranges::minmax(context_.anchor_ratios);
    const double flat = share_if(ratios, [&](double ratio) { return ratio < low / kFar; });
    const double tall = share_if(ratios, [&](double ratio) { return ratio > high * kFar; });
    if (flat + tall < 0.1) return;
    auto wanted = context_.anchor_ratios;
    if (flat > 0.05) wanted.insert(wanted.begin(), low / 2);
    if (tall > 0.05) wanted.push_back(high * 2);
    if (wanted.size() == context_.anchor_ratios.size()) return;
    constexpr double kMany = 0.25;  // of the objects
    all_.push_back(
        {"long-objects",
         fmt::format("{} of the objects are flatter or taller than the anchors ({}) by half: try "
                     "model.anchors.aspect_ratios = {}.",
                     percent(flat + tall), list_text(context_.anchor_ratios), list_text(wanted)),
         flat + tall > kMany});
  }

  void density() {
    const auto counts = objects_per_image(train_.data);
    const auto most = static_cast<double>(context_.most_detections);
    const auto over = std::ranges::count_if(counts, [&](double count) { return count > most; });
    if (most > 0 && over > 0)
      warn("many-objects",
           fmt::format("{} more objects than the {} that model.test.detections_per_img keeps (the "
                       "fullest {:.0f}): raise it, or those beyond are missed.",
                       over == 1 ? "1 image has" : fmt::format("{} images have", over),
                       context_.most_detections, std::ranges::max(counts)));
    if (const auto crowds = crowd_count(train_.data); crowds > 0)
      note("crowds", fmt::format("{} not learned; what is found there counts neither as right nor "
                                 "as wrong.",
                                 crowds == 1 ? "1 crowd region is"
                                             : fmt::format("{} crowd regions are", crowds)));
  }

  void scales() {
    if (train_.is_sampled || context_.short_side == 0) return;
    const double median = quantile(of_images(train_.data, scale), .5);
    if (median > 1.3)
      note("enlarged",
           fmt::format("Half of the images are enlarged {:.1f} times or more. That helps to find "
                       "small objects, and takes time: where objects are large, a smaller "
                       "data.short_side than {} will do.",
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
           fmt::format(
               "{} no object to learn from: {}.",
               none.size() == 1 ? "1 class has" : fmt::format("{} classes have", none.size()),
               first(none)));
    if (!few.empty())
      warn("rare-classes",
           fmt::format("{} fewer than {} objects: {}. The source repeat_factor "
                       "shows rare classes more often.",
                       few.size() == 1 ? "1 class has" : fmt::format("{} classes have", few.size()),
                       kFew, first(few)));
    if (order.size() < 2) return;
    const auto [rare, often] =
        std::ranges::minmax(order, {}, [&](std::size_t k) { return counts[k].objects; });
    note("class-balance",
         fmt::format("'{}' has {}, '{}' {}.", photos_.data.classes[often],
                     counted(static_cast<long long>(counts[often].objects), "object"),
                     photos_.data.classes[rare], counts[rare].objects));
  }

  void against_val() {
    if (!val_ || train_.is_sampled) return;
    const auto own = quantile(values(train_.data, &SeenObject::size), .5);
    const auto others = quantile(values(val_->data, &SeenObject::size), .5);
    if (own <= 0 || others <= 0) return;
    if (const double times = others / own; times > 1.5 || times < 1 / 1.5)
      warn("validation-differs",
           fmt::format("Objects of {} are {:.1f} times as large as those of {} (medians {} and {} "
                       "pixels, at the sizes seen): the split, or data.test_short_side, differs.",
                       val_->name, times, train_.name, pixels(others), pixels(own)));
  }

  void unread() {
    if (photos_.data.unreadable > 0)
      warn("unreadable", fmt::format("{} could not be read and counts nowhere here: `trainer "
                                     "doctor` says why.",
                                     counted(photos_.data.unreadable, "sample")));
    if (photos_.data.without_size > 0)
      note("without-size",
           fmt::format("The size of {} is known only once decoded: such are in no figure here.",
                       counted(photos_.data.without_size, "image")));
  }

  const SplitView& train_;
  const SplitView& photos_;
  const SplitView* val_;
  const DataContext& context_;
  std::vector<Remark> all_;
};

}  // namespace

std::vector<std::string> size_names() {
  std::vector<std::string> names = {fmt::format("under {:g}", kSizeBounds.front())};
  for (std::size_t k = 1; k < kSizeBounds.size(); ++k)
    names.push_back(fmt::format("{:g} to {:g}", kSizeBounds[k - 1], kSizeBounds[k]));
  names.push_back(fmt::format("{:g} and more", kSizeBounds.back()));
  return names;
}

std::vector<Distribution> distributions(const SplitView& split, const DataContext& context) {
  std::vector<Distribution> all;
  if (split.data.images.empty()) return all;
  const auto add = [&](Distribution one, std::string meaning) {
    one.meaning = std::move(meaning);
    all.push_back(std::move(one));
  };
  const auto sizes = values(split.data, &SeenObject::size);
  add(distribution("object_size", "Sizes of objects", "pixels seen: square root of the box's area",
                   sizes,
                   {0, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536}),
      of_sizes(split, sizes));
  const auto ratios = values(split.data, &SeenObject::ratio);
  add(distribution("object_ratio", "Aspect ratios of objects", "height / width", ratios,
                   {0, .1, .2, .33, .5, .67, .8, 1, 1.25, 1.5, 2, 3, 5, 10}),
      of_ratios(ratios, context));
  const auto counts = objects_per_image(split.data);
  auto per_image =
      distribution("objects_per_image", "Objects of an image", "objects", counts,
                   {0, 1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 500});
  ++per_image.most;  // whole numbers: the last bin ends before the next one
  add(std::move(per_image), of_counts(counts));
  add(distribution("image_size", "Sizes of images", "longer side in pixels, of the file",
                   of_images(split.data, longer_side),
                   {0, 128, 192, 256, 320, 480, 640, 800, 1024, 1280, 1600, 2048, 3072, 4096, 6144,
                    8192, 12288}),
      of_images_sizes(split));
  if (!split.coverage.empty()) {
    std::vector<double> edges;
    for (int k = 0; k <= 10; ++k) edges.push_back(k / 10.);
    auto ious = distribution("anchor_iou", "The best anchor of each object", "IoU",
                             best_ious(split), std::move(edges));
    ious.most = 1;
    add(std::move(ious), of_coverage(summary(split.data, split.coverage), context));
  }
  return all;
}

std::vector<Remark> remarks(const SplitView& learned, const SplitView& photos, const SplitView* val,
                            const DataContext& context) {
  return Remarks(learned, photos, val, context).all();
}

Json to_json(const SplitView& split, const std::vector<Distribution>& all) {
  const auto& data = split.data;
  const auto crowds = crowd_count(data);
  Json json = {{"name", split.name},
               {"seen", split.seen},
               {"from_batches", split.is_sampled},
               {"images", data.images.size()},
               {"objects", data.objects.size() - crowds},
               {"crowds", crowds}};
  const auto counts = class_counts(data);
  for (std::size_t k = 0; k < counts.size(); ++k)
    json["classes"].push_back(
        {{"name", data.classes[k]}, {"objects", counts[k].objects}, {"images", counts[k].images}});
  for (const auto& one : all)
    json["histograms"][one.id] = {{"edges", one.histogram.edges},
                                  {"counts", one.histogram.counts},
                                  {"median", one.median},
                                  {"most", one.most}};
  if (split.coverage.empty()) return json;
  const auto sums = summary(data, split.coverage);
  const auto of_kind = [](const std::string& name, const CoverageCounts& counted) -> Json {
    return {{"size", name},
            {"objects", counted.objects},
            {"foreground", counted.reached[0]},
            {"low_quality", counted.reached[1]},
            {"none", counted.reached[2]},
            {"recall50", counted.recall(0)},
            {"recall70", counted.recall(1)}};
  };
  json["anchors"].push_back(of_kind("all", sums.all));
  const auto names = size_names();
  for (std::size_t k = 0; k < names.size(); ++k)
    json["anchors"].push_back(of_kind(names[k], sums.by_size[k]));
  return json;
}

}  // namespace millrace::cli
