#include "millrace/cli/inspect/distributions.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "millrace/base/text.h"
#include "millrace/cli/inspect/figure_text.h"

namespace millrace::cli {
namespace {

std::vector<double> longer_sides(const SeenData& data) {
  std::vector<double> result;
  for (const auto& image : data.images)
    result.push_back(std::max(image.original.width, image.original.height));
  return result;
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
      pixel_text(quantile(sizes, .5)), pixel_text(quantile(sizes, .1)), split.seen);
  const double tiny = share_if(sizes, [](double size) { return size < kTinyPixels; });
  if (tiny >= 0.001)
    text += fmt::format(
        " {} are below {:.0f} pixels: a stride of 4 leaves them less than 4 x 4 places.",
        percent_text(tiny), kTinyPixels);
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
  const auto scales = image_scales(split.data);
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
      percent_text(all.share(Reach::foreground)), context.foreground, context.foreground_key,
      percent_text(all.share(Reach::low_quality)), percent_text(all.share(Reach::nothing)),
      percent_text(all.recall(0)), percent_text(all.recall(1)));
}

std::vector<double> best_ious(const SplitView& split) {
  std::vector<double> result;
  for (std::size_t i = 0; i < split.coverage.size(); ++i)
    if (!split.data.objects[i].crowd) result.push_back(double{split.coverage[i].best_iou});
  return result;
}

}  // namespace

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
                   longer_sides(split.data),
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

}  // namespace millrace::cli
