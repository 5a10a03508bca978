#include "millrace/cli/predict/results_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/text.h"
#include "millrace/dataflow/image/image_file.h"
#include "millrace/tools/report/view.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kPhotoSide = 320;              // longer side of a thumbnail, pixels
constexpr std::size_t kPhotoBytes = 15'000;  // per thumbnail
constexpr double kLeastShown = 0.2;          // minimum score in the page; half of --score if lower
constexpr std::size_t kMostShapes = 500;     // per photo: those with the highest scores

/// Parses the records of one photo as they are in detections.json.
nlohmann::json records(std::string_view text) {
  const auto begin = text.find('{');
  if (begin == std::string_view::npos) return nlohmann::json::array();
  return nlohmann::json::parse("[" + std::string(text.substr(begin)) + "]");
}

report::Shape shape_of(const nlohmann::json& record, int label, double tolerance) {
  report::Shape shape{.category = label, .score = record.at("score").get<double>()};
  if (const auto box = record.find("bbox"); box != record.end())
    for (std::size_t k = 0; k < 4; ++k) shape.box[k] = box->at(k).get<float>();
  const auto mask = record.find("segmentation");
  if (mask == record.end()) return shape;
  const auto& size = mask->at("size");
  shape.outline = report::outline_of(
      coco::decode_counts(mask->at("counts").get<std::string>(), size.at(0).get<std::uint32_t>(),
                          size.at(1).get<std::uint32_t>()),
      tolerance);
  return shape;
}

/// Returns true if photo `number` of `all` is one of up to `most` evenly spaced photos.
bool is_chosen(std::int64_t number, std::int64_t all, std::int64_t most) {
  if (all <= most) return true;
  // The k-th chosen photo is floor(k * all / most).
  const auto k = (number * most + all - 1) / all;
  return k < most && k * all / most == number;
}

/// Returns every second picture.
std::vector<report::Picture> half_of(const std::vector<report::Picture>& all) {
  std::vector<report::Picture> half;
  for (std::size_t k = 0; k < all.size(); k += 2) half.push_back(all[k]);
  return half;
}

}  // namespace

void ResultsPage::add_photos(const PhotoResults& results) {
  const auto& ids = prediction_.split.category_ids;
  counts_.resize(ids.size());
  const auto label_of = [&](std::int64_t id) { return std::ranges::find(ids, id) - ids.begin(); };
  const auto all = results.pictures();
  results.each([&](const PhotoResult& photo, std::string_view found) {
    if (!photo.fault.empty()) {
      if (++failed_count_ <= static_cast<std::int64_t>(FailedPhotos::kShown))
        failed_.push_back(photo.fault);
    }
    if (photo.width == 0) return;
    const bool shown = is_chosen(photos_++, all, static_cast<std::int64_t>(kMostPhotos));
    const double tolerance = report::outline_tolerance({photo.width, photo.height}, kPhotoSide);
    const double least = std::min(kLeastShown, prediction_.score / 2);
    std::set<std::ptrdiff_t> seen;
    std::vector<report::Shape> shapes;
    std::vector<double> scores;
    for (const auto& record : records(found)) {
      const auto label = label_of(record.at("category_id").get<std::int64_t>());
      const auto score = record.at("score").get<double>();
      if (score >= prediction_.score) {
        auto& count = counts_[static_cast<std::size_t>(label)];
        ++count.objects, ++objects_;
        count.photos += seen.insert(label).second;
      }
      if (!shown || score < least) continue;
      scores.push_back(score);
      if (shapes.size() < kMostShapes)  // records are sorted by score
        shapes.push_back(shape_of(record, static_cast<int>(label), tolerance));
    }
    empty_ += seen.empty();
    if (shown) pictures_.push_back(picture(photo, std::move(shapes), scores));
  });
}

report::Picture ResultsPage::picture(const PhotoResult& photo, std::vector<report::Shape> shapes,
                                     const std::vector<double>& scores) const {
  report::Picture picture{.title = photo.file.filename().string(),
                          .width = photo.width,
                          .height = photo.height,
                          .shapes = std::move(shapes)};
  if (picture.shapes.size() < scores.size())
    picture.caption = fmt::format("drawn: the {} of {} with the highest scores",
                                  picture.shapes.size(), scores.size());
  double objects = 0, unsure = 0, best = 0;
  for (const double score : scores) {
    ++(score >= prediction_.score ? objects : unsure);
    best = std::max(best, score);
  }
  for (auto& shape : annotated(photo)) picture.shapes.push_back(std::move(shape));
  picture.metrics = {{"objects", objects}, {"unsure", unsure}};
  if (best > 0) picture.metrics.emplace_back("best score", best);
  if (objects == 0) picture.tags.emplace_back("nothing found");
  if (!photo.fault.empty()) picture.tags.emplace_back("failed");
  std::optional<cv::Size> annotated;
  if (prediction_.split.annotations->find_image(photo.id))
    annotated.emplace(photo.width, photo.height);
  try {
    picture.jpeg = report::thumbnail(
        decode_rgb(read_file(photo.file), photo.file.string(), annotated, /*strict=*/false,
                   cv::Size(std::min(photo.width, kPhotoSide), std::min(photo.height, kPhotoSide)),
                   /*max_pixels=*/0),  // no limit: detection has already decoded it
        kPhotoBytes, kPhotoSide);
  } catch (const std::exception& problem) {  // from OpenCV, or a deleted file
    picture.caption = sentence_of(problem.what());
  }
  return picture;
}

std::vector<report::Shape> ResultsPage::annotated(const PhotoResult& photo) const {
  std::vector<report::Shape> shapes;
  const auto& split = prediction_.split;
  const auto* image = split.annotations->find_image(photo.id);
  if (!image) return shapes;
  const double tolerance = report::outline_tolerance({photo.width, photo.height}, kPhotoSide);
  for (const auto& object : split.annotations->objects(*image)) {
    const auto label = std::ranges::find(split.category_ids, object.category_id);
    if (label == split.category_ids.end()) continue;
    report::Shape shape{
        .category = static_cast<int>(label - split.category_ids.begin()),
        .outline = report::outline_of(split.annotations->segmentation(object), tolerance),
        .kind = report::Shape::annotated,
        .crowd = object.crowd,
        .note = object.crowd ? "crowd" : ""};
    for (std::size_t k = 0; k < 4; ++k) shape.box[k] = static_cast<float>(object.bbox[k]);
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

void ResultsPage::add_video(const VideoResult& video) { videos_.push_back(video); }

void ResultsPage::write() const {
  auto shown = pictures_;
  auto text = page(shown);
  while (text.size() > kMostBytes && shown.size() > 1) {
    shown = half_of(shown);
    text = page(shown);
  }
  write_file_atomically(prediction_.out / "index.html", text);
}

std::string ResultsPage::page(const std::vector<report::Picture>& shown) const {
  return report::view_page("predictions", "trainer predict",
                           {{"score", prediction_.score},
                            {"photos", photos_ + failed_count_ > 0 ? photos_json(shown) : nullptr},
                            {"videos", videos_json()}});
}

nlohmann::ordered_json ResultsPage::photos_json(const std::vector<report::Picture>& shown) const {
  auto classes = nlohmann::ordered_json::array();
  for (std::size_t k = 0; k < counts_.size(); ++k)
    if (counts_[k].objects > 0)
      classes.push_back({{"name", prediction_.split.classes[k]},
                         {"objects", counts_[k].objects},
                         {"photos", counts_[k].photos}});
  return {{"count", photos_},
          {"objects", objects_},
          {"empty", empty_},
          {"failed", {{"count", failed_count_}, {"first", failed_}}},
          {"classes", std::move(classes)},
          {"pictures", report::to_json(report::Gallery{.categories = prediction_.split.classes,
                                                       .pictures = shown,
                                                       .score = prediction_.score})}};
}

nlohmann::ordered_json ResultsPage::videos_json() const {
  auto all = nlohmann::ordered_json::array();
  for (const auto& [name, frames, counts, fault] : videos_)
    all.push_back({{"name", name}, {"frames", frames}, {"counts", counts}, {"fault", fault}});
  return all;
}

}  // namespace millrace::cli
