#include "millrace/report/picture_section.h"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <tuple>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/text.h"
#include "millrace/coco/drawing/page_picture.h"
#include "millrace/dataflow/image/image_file.h"
#include "millrace/page/gallery.h"
#include "millrace/page/html.h"

namespace millrace::report {
namespace {

constexpr double kLeastScore = .05;     // of detections that the page has
constexpr std::size_t kMostFound = 30;  // of an image, the best scores
constexpr std::size_t kMostObjects = 60;
constexpr int kMostSide = 640;                                   // pixels of a picture
constexpr std::size_t kMostBytes = 60'000, kLeastBytes = 4'000;  // of a picture

/// The positions of each image's detections, by falling score.
std::vector<std::vector<std::size_t>> detections_by_image(const RunScores& scores) {
  const auto& images = scores.truth.annotations->images;
  std::vector<std::vector<std::size_t>> all(images.size());
  for (std::size_t i = 0; i < scores.found.size(); ++i) {
    const auto* image = scores.truth.annotations->find_image(scores.found[i].image_id);
    if (image) all[static_cast<std::size_t>(image - images.data())].push_back(i);
  }
  for (auto& one : all)
    std::ranges::stable_sort(one, std::ranges::greater(),
                             [&](std::size_t i) { return scores.found[i].score; });
  return all;
}

std::string_view error_name(std::uint8_t verdict) {
  return verdict < coco::kErrorKinds ? coco::kErrorNames[verdict] : std::string_view();
}

float clipped(double value) { return static_cast<float>(std::clamp(value, -1e5, 1e5)); }

page::Shape found_shape(const RunScores& scores, std::size_t i, double tolerance) {
  const auto& one = scores.found[i];
  page::Shape shape;
  shape.category = scores.truth.annotations->category_index(one.category_id);
  shape.score = one.score;
  for (std::size_t k = 0; k < 4; ++k) shape.box[k] = clipped(one.bbox[k]);
  if (one.mask != coco::Detections::kNoMask)
    shape.outline = coco::outline_path(scores.found.mask(i), tolerance);
  shape.note = error_name(scores.boxes.verdicts.detections[i]);
  return shape;
}

page::Shape annotated_shape(const RunScores& scores, std::size_t a, double tolerance) {
  const auto& truth = *scores.truth.annotations;
  const auto& one = truth.annotations[a];
  page::Shape shape;
  shape.kind = page::Shape::annotated;
  shape.category = truth.category_index(one.category_id);
  for (std::size_t k = 0; k < 4; ++k) shape.box[k] = clipped(one.bbox[k]);
  if (scores.masks) {
    const auto outline = truth.segmentation(one);
    if (const auto* polygons = std::get_if<std::vector<coco::Polygon>>(&outline))
      shape.outline = coco::outline_path(*polygons, tolerance);
    else if (const auto* mask = std::get_if<coco::Rle>(&outline))
      shape.outline = coco::outline_path(*mask, tolerance);
  }
  const double found_at = scores.boxes.verdicts.found_at[a];
  if (found_at == -1) {
    shape.note = "crowd, does not count";
  } else {
    shape.found_at = std::isnan(found_at) ? 0 : found_at;
  }
  return shape;
}

/// All but the pixels.
page::Picture picture_of(const RunScores& scores, std::size_t i, const ImageTally& tally,
                         const std::vector<std::size_t>& found, double score) {
  const auto& truth = *scores.truth.annotations;
  const auto& image = truth.images[i];
  page::Picture picture;
  picture.title = truth.text(image.file_name);
  picture.width = image.width, picture.height = image.height;
  const double tolerance = std::max(1., std::max(image.width, image.height) / 400.);
  std::set<std::string> tags;
  std::size_t taken = 0;
  for (const std::size_t d : found) {
    const auto& one = scores.found[d];
    if (one.score < kLeastScore || taken >= kMostFound) break;
    if (truth.category_index(one.category_id) < 0) continue;
    ++taken;
    picture.shapes.push_back(found_shape(scores, d, tolerance));
    if (one.score >= score && !picture.shapes.back().note.empty())
      tags.insert("error: " + picture.shapes.back().note);
  }
  const std::size_t last = image.first + std::min<std::size_t>(image.count, kMostObjects);
  for (std::size_t a = image.first; a < last; ++a)
    picture.shapes.push_back(annotated_shape(scores, a, tolerance));
  if (tally.missed() > 0) tags.insert("error: missed");
  if (tally.missed() + tally.wrong == 0) tags.insert("all right");
  if (tally.objects == 0) tags.insert("without objects");
  picture.tags.assign(tags.begin(), tags.end());
  picture.figures = {{"F1", tally.f1()},
                     {"wrong", tally.wrong},
                     {"missed", tally.missed()},
                     {"objects", tally.objects}};
  return picture;
}

/// About the bytes of HTML of a picture without its pixels.
std::size_t html_bytes(const page::Picture& picture) {
  std::size_t bytes = 800 + 2 * picture.title.size();
  for (const page::Shape& shape : picture.shapes)
    bytes += 130 + shape.note.size() + 2 * std::max<std::size_t>(shape.outline.size(), 30);
  return bytes;
}

}  // namespace

std::vector<ImageTally> tallies(const RunScores& scores, double score) {
  const auto& truth = *scores.truth.annotations;
  const auto& verdicts = scores.boxes.verdicts;
  std::vector<ImageTally> all(truth.images.size());
  for (std::size_t i = 0; i < truth.images.size(); ++i)
    for (std::size_t a = truth.images[i].first; a < truth.images[i].first + truth.images[i].count;
         ++a) {
      const double found_at = verdicts.found_at[a];
      if (found_at == -1) continue;
      ++all[i].objects;
      all[i].hits += found_at >= score;  // NaN: not found
    }
  const auto found = detections_by_image(scores);
  for (std::size_t i = 0; i < found.size(); ++i)
    for (const std::size_t d : found[i])
      all[i].wrong += scores.found[d].score >= score && verdicts.detections[d] < coco::kErrorKinds;
  return all;
}

std::vector<std::size_t> chosen_images(const RunScores& scores, double score, std::size_t most) {
  const auto all = tallies(scores, score);
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto worst = [&](std::size_t i) {
    return std::tuple(all[i].f1(), -(all[i].missed() + all[i].wrong), i);
  };
  std::ranges::sort(order, {}, worst);
  if (order.size() <= most) return order;
  std::set<std::size_t> chosen;
  const auto take = [&](std::size_t until) {
    for (const std::size_t i : order) {
      if (chosen.size() >= until) break;
      chosen.insert(i);
    }
  };
  take(most * 2 / 5);
  std::ranges::sort(
      order, {}, [&](std::size_t i) { return std::tuple(-(all[i].missed() + all[i].wrong), i); });
  take(most * 7 / 10);
  std::ranges::sort(order, {}, [&](std::size_t i) {
    return std::tuple(all[i].objects == 0, -all[i].f1(), -all[i].objects, i);
  });
  take(most);
  std::vector<std::size_t> shown(chosen.begin(), chosen.end());
  std::ranges::sort(shown, {}, worst);
  return shown;
}

page::Section picture_section(const RunScores& scores, const PictureLimits& limits) {
  const auto& truth = *scores.truth.annotations;
  page::Gallery gallery{.id = "pictures"};
  // As the slider of the page has it, so that the figures below a picture are of what it shows
  gallery.score = std::round(scores.boxes.operating.best.score * 100) / 100;
  for (const auto& category : truth.categories)
    gallery.categories.emplace_back(truth.text(category.name));
  const auto shown = chosen_images(scores, gallery.score, limits.images);
  const auto all = tallies(scores, gallery.score);
  const auto found = detections_by_image(scores);
  gallery.pictures.resize(shown.size());
  tbb::parallel_for(std::size_t{0}, shown.size(), [&](std::size_t k) {
    const std::size_t i = shown[k];
    gallery.pictures[k] = picture_of(scores, i, all[i], found[i], gallery.score);
  });
  std::size_t used = 0;
  for (const auto& picture : gallery.pictures) used += html_bytes(picture);
  const std::size_t left = limits.bytes > used ? limits.bytes - used : 0;
  const std::size_t each =
      std::clamp(left * 3 / 4 / std::max<std::size_t>(shown.size(), 1), kLeastBytes, kMostBytes);
  std::vector<std::string> problems(shown.size());
  tbb::parallel_for(std::size_t{0}, shown.size(), [&](std::size_t k) {
    const auto& image = truth.images[shown[k]];
    const std::string file = (scores.truth.images / truth.text(image.file_name)).string();
    try {
      const double scale =
          std::min(1., static_cast<double>(kMostSide) / std::max(image.width, image.height));
      const cv::Size enough(static_cast<int>(std::ceil(image.width * scale)),
                            static_cast<int>(std::ceil(image.height * scale)));
      gallery.pictures[k].jpeg =
          coco::thumbnail(decode_rgb(read_image_file(file), file,
                                     cv::Size(image.width, image.height), /*strict=*/false, enough),
                          each, kMostSide);
    } catch (const std::exception& problem) {
      problems[k] = problem.what();
      gallery.pictures[k].tags.emplace_back("no picture");
    }
  });
  std::string body = fmt::format(
      "<p class=\"soft\">{} of {}, worst first, at the score of the best F1. Each object and each "
      "detection is judged at IoU .50: a detection is right, or one of the kinds of errors of this "
      "page; an object is missed where no detection with at least the chosen score finds it.</p>\n",
      counted(static_cast<long long>(shown.size()), "image"), truth.images.size());
  const auto lost = std::ranges::count_if(problems, [](const auto& one) { return !one.empty(); });
  if (lost > 0)
    body += fmt::format(
        "<p class=\"verdict warning\">{} cannot be shown, only what was found in "
        "{}: {}</p>\n",
        counted(lost, "image"), lost == 1 ? "it" : "them",
        page::escaped(
            *std::ranges::find_if(problems, [](const auto& one) { return !one.empty(); })));
  return {"images", "Best and worst images", body + page::gallery(gallery)};
}

}  // namespace millrace::report
