#include "millrace/tools/report/run_pictures.h"

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
#include "millrace/dataflow/image/image_file.h"

namespace millrace::report {
namespace {

constexpr auto kReplace = nlohmann::json::error_handler_t::replace;
constexpr double kLeastScore = .05;     // minimum score of drawn detections, unless F1 is best at a
                                        // lower one
constexpr std::size_t kMostFound = 30;  // per image, those with the best scores
constexpr std::size_t kMostObjects = 60;
constexpr int kMostSide = 640;                                          // in pixels
constexpr std::size_t kMostPictureBytes = 60'000, kLeastBytes = 4'000;  // per picture

/// Returns the indices of each image's detections, in descending order of score.
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

Shape found_shape(const RunScores& scores, std::size_t i, double tolerance) {
  const auto& one = scores.found[i];
  Shape shape;
  shape.category = scores.truth.annotations->category_index(one.category_id);
  shape.score = one.score;
  for (std::size_t k = 0; k < 4; ++k) shape.box[k] = clipped(one.bbox[k]);
  if (one.mask != coco::Detections::kNoMask)
    shape.outline = outline_of(scores.found.mask(i), tolerance);
  shape.note = error_name(scores.boxes.verdicts.detections[i]);
  return shape;
}

Shape annotated_shape(const RunScores& scores, std::size_t a, double tolerance) {
  const auto& truth = *scores.truth.annotations;
  const auto& one = truth.annotations[a];
  Shape shape;
  shape.kind = Shape::annotated;
  shape.category = truth.category_index(one.category_id);
  for (std::size_t k = 0; k < 4; ++k) shape.box[k] = clipped(one.bbox[k]);
  if (scores.masks) shape.outline = outline_of(truth.segmentation(one), tolerance);
  const double found_at = scores.boxes.verdicts.found_at[a];
  if (found_at == -1) {
    shape.crowd = true;
    shape.note = "crowd, ignored";
  } else {
    shape.found_at = std::isnan(found_at) ? 0 : found_at;
  }
  return shape;
}

/// Describes the detections and objects that are not drawn; empty if all are.
std::string cut_text(std::size_t found, std::size_t objects) {
  std::vector<std::string> words;
  if (found > kMostFound)
    words.push_back(fmt::format("best {} of {} detections", kMostFound, found));
  if (objects > kMostObjects)
    words.push_back(fmt::format("{} of {} objects", kMostObjects, objects));
  return words.empty() ? "" : "drawn: " + joined(words);
}

/// Returns the picture without its pixels.
Picture picture_of(const RunScores& scores, std::size_t i, const ImageTally& tally,
                   const std::vector<std::size_t>& found, double score) {
  const auto& truth = *scores.truth.annotations;
  const auto& image = truth.images[i];
  Picture picture;
  picture.title = truth.text(image.file_name);
  picture.width = image.width, picture.height = image.height;
  const double tolerance = std::max(1., std::max(image.width, image.height) / 400.);
  std::set<std::string> tags;
  const double least = std::min(kLeastScore, scores.boxes.operating.best.score);
  std::size_t known = 0;
  for (const std::size_t d : found) {
    const auto& one = scores.found[d];
    if (one.score < least) break;
    if (truth.category_index(one.category_id) < 0 || ++known > kMostFound) continue;
    picture.shapes.push_back(found_shape(scores, d, tolerance));
    if (one.score >= score && !picture.shapes.back().note.empty())
      tags.insert("error: " + picture.shapes.back().note);
  }
  const std::size_t last = image.first + std::min<std::size_t>(image.count, kMostObjects);
  for (std::size_t a = image.first; a < last; ++a)
    picture.shapes.push_back(annotated_shape(scores, a, tolerance));
  picture.caption = cut_text(known, image.count);
  if (tally.missed() > 0) tags.insert("error: missed");
  if (tally.missed() + tally.wrong == 0) tags.insert("all correct");
  if (tally.objects == 0) tags.insert("without objects");
  picture.tags.assign(tags.begin(), tags.end());
  picture.metrics = {{"F1", tally.f1()},
                     {"wrong", tally.wrong},
                     {"missed", tally.missed()},
                     {"objects", tally.objects}};
  return picture;
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
      all[i].hits += found_at >= score;  // NaN = not found
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

RunPictures run_pictures(const RunScores& scores, const PictureLimits& limits) {
  const auto& truth = *scores.truth.annotations;
  Gallery gallery;
  // Rounded like the viewer's slider, so that the metrics below a picture match the shown
  // detections.
  gallery.score = std::round(scores.boxes.operating.best.score * 100) / 100;
  for (const auto& category : truth.categories)
    gallery.categories.emplace_back(truth.text(category.name));
  const auto shown = chosen_images(scores, gallery.score, limits.images);
  const auto all = tallies(scores, gallery.score);
  const auto found = detections_by_image(scores);
  gallery.pictures.resize(shown.size());
  std::vector<std::size_t> bytes(shown.size());  // without pixels
  tbb::parallel_for(std::size_t{0}, shown.size(), [&](std::size_t k) {
    const std::size_t i = shown[k];
    gallery.pictures[k] = picture_of(scores, i, all[i], found[i], gallery.score);
    bytes[k] = to_json(gallery.pictures[k]).dump(-1, ' ', false, kReplace).size();
  });
  const std::size_t used = std::accumulate(bytes.begin(), bytes.end(), std::size_t{0});
  const std::size_t left = limits.bytes > used ? limits.bytes - used : 0;
  const std::size_t each = std::clamp(left * 3 / 4 / std::max<std::size_t>(shown.size(), 1),
                                      kLeastBytes, kMostPictureBytes);
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
          thumbnail(decode_rgb(read_image_file(file), file, cv::Size(image.width, image.height),
                               /*strict=*/false, enough),
                    each, kMostSide);
    } catch (const std::exception& problem) {
      problems[k] = problem.what();
      gallery.pictures[k].tags.emplace_back("no picture");
    }
  });
  std::erase(problems, "");
  if (problems.empty()) return {std::move(gallery), ""};
  return {std::move(gallery), fmt::format("{} cannot be shown, only detections in {}: {}",
                                          counted(problems.size(), "image"),
                                          problems.size() == 1 ? "it" : "them", problems.front())};
}

}  // namespace millrace::report
