#include "millrace/cli/predict/results_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/text.h"
#include "millrace/cli/page_pictures.h"
#include "millrace/coco/drawing/page_picture.h"
#include "millrace/dataflow/image/image_file.h"
#include "millrace/page/html.h"
#include "millrace/page/page.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;
using page::escaped;

constexpr int kPhotoSide = 320;              // pixels of a thumbnail
constexpr std::size_t kPhotoBytes = 15'000;  // likewise
constexpr double kLeastShown = 0.2;  // scores that the page can show: these, or half of --score
constexpr std::size_t kMostShapes = 500;  // of a photo: those of the highest scores

/// The records of a photo as written into detections.json.
nlohmann::json records(std::string_view text) {
  const auto begin = text.find('{');
  if (begin == std::string_view::npos) return nlohmann::json::array();
  return nlohmann::json::parse("[" + std::string(text.substr(begin)) + "]");
}

page::Shape shape_of(const nlohmann::json& record, int label, double tolerance) {
  page::Shape shape{.category = label, .score = record.at("score").get<double>()};
  if (const auto box = record.find("bbox"); box != record.end())
    for (std::size_t k = 0; k < 4; ++k) shape.box[k] = box->at(k).get<float>();
  const auto mask = record.find("segmentation");
  if (mask == record.end()) return shape;
  const auto& size = mask->at("size");
  shape.outline = coco::outline_path(
      coco::decode_counts(mask->at("counts").get<std::string>(), size.at(0).get<std::uint32_t>(),
                          size.at(1).get<std::uint32_t>()),
      tolerance);
  return shape;
}

/// Whether photo `number` of `all` is one of at most `most` at equal distances.
bool is_chosen(std::int64_t number, std::int64_t all, std::int64_t most) {
  if (all <= most) return true;
  // The k-th chosen is floor(k all / most).
  const auto k = (number * most + all - 1) / all;
  return k < most && k * all / most == number;
}

/// A file's name as a link from the same folder.
std::string relative_url(const std::string& name) {
  std::string url = "./";
  for (const char c : name)
    url += std::string_view("%#?\"'").find(c) == std::string_view::npos
               ? std::string(1, c)
               : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  return url;
}

/// About half of the pictures, at equal distances.
std::vector<page::Picture> half_of(const std::vector<page::Picture>& all) {
  std::vector<page::Picture> half;
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
    const double tolerance = outline_tolerance({photo.width, photo.height}, kPhotoSide);
    const double least = std::min(kLeastShown, prediction_.score / 2);
    std::set<std::ptrdiff_t> seen;
    std::vector<page::Shape> shapes;
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
      if (shapes.size() < kMostShapes)  // the best come first
        shapes.push_back(shape_of(record, static_cast<int>(label), tolerance));
    }
    empty_ += seen.empty();
    if (shown) pictures_.push_back(picture(photo, std::move(shapes), scores));
  });
}

page::Picture ResultsPage::picture(const PhotoResult& photo, std::vector<page::Shape> shapes,
                                   const std::vector<double>& scores) const {
  page::Picture picture{.title = photo.file.filename().string(),
                        .width = photo.width,
                        .height = photo.height,
                        .shapes = std::move(shapes)};
  if (picture.shapes.size() < scores.size())
    picture.caption = fmt::format("drawn: the best {} of {}", picture.shapes.size(), scores.size());
  double objects = 0, unsure = 0, best = 0;
  for (const double score : scores) {
    ++(score >= prediction_.score ? objects : unsure);
    best = std::max(best, score);
  }
  picture.figures = {{"objects", objects}, {"unsure", unsure}};
  if (best > 0) picture.figures.emplace_back("best score", best);
  if (objects == 0) picture.tags.emplace_back("nothing found");
  if (!photo.fault.empty()) picture.tags.emplace_back("failed");
  std::optional<cv::Size> annotated;
  if (prediction_.split.annotations->find_image(photo.id))
    annotated.emplace(photo.width, photo.height);
  try {
    picture.jpeg = coco::thumbnail(
        decode_rgb(read_file(photo.file), photo.file.string(), annotated, /*strict=*/false,
                   cv::Size(std::min(photo.width, kPhotoSide), std::min(photo.height, kPhotoSide)),
                   /*max_pixels=*/0),  // as large as it was found
        kPhotoBytes, kPhotoSide);
  } catch (const std::exception& problem) {  // OpenCV's, too; the file may be gone by now
    picture.caption = sentence_of(problem.what());
  }
  return picture;
}

void ResultsPage::add_video(const VideoResult& video) { videos_.push_back(video); }

void ResultsPage::write() const {
  auto shown = pictures_;
  auto text = html(shown);
  while (text.size() > kMostBytes && shown.size() > 1) {
    shown = half_of(shown);
    text = html(shown);
  }
  write_file_atomically(prediction_.out / "index.html", text);
}

std::string ResultsPage::html(const std::vector<page::Picture>& shown) const {
  page::Page page{
      .title = "What was found",
      .subtitle = fmt::format("Objects that score {:g} or more; <code>{}</code> has all.",
                              prediction_.score, photos_ > 0 ? "detections.json" : "NAME.jsonl")};
  if (photos_ > 0) {
    page.top = page::tiles(std::vector<page::Tile>{
        {std::to_string(objects_), "objects"},
        {std::to_string(photos_), photos_ == 1 ? "photo" : "photos"},
        {std::to_string(empty_), "without any"},
        {fmt::format("{:.1f}", static_cast<double>(objects_) / static_cast<double>(photos_)),
         "objects a photo"}});
    if (failed_count_ > 0)
      page.top += fmt::format("<p class=\"verdict warning\">{} failed: {}</p>\n",
                              counted(failed_count_, "file"), escaped(joined(failed_, "; ")));
    std::string text;
    if (std::ssize(shown) < photos_)
      text = fmt::format(
          "<p>{} of {} photos, at equal distances: the page stays below {} MB. "
          "Beside it is a picture of each.</p>\n",
          shown.size(), photos_, kMostBytes / 1'000'000);
    page::Gallery gallery{.id = "found",
                          .categories = prediction_.split.classes,
                          .pictures = shown,
                          .score = prediction_.score};
    page.sections.push_back({"classes", "Classes", counts_html()});
    page.sections.push_back({"photos", "Photos", text + page::gallery(gallery)});
  }
  if (!videos_.empty()) page.sections.push_back({"videos", "Videos", videos_html()});
  page.footer = "Made by <code>trainer predict</code>.";
  return page.html();
}

std::string ResultsPage::counts_html() const {
  std::vector<std::size_t> order;
  for (std::size_t k = 0; k < counts_.size(); ++k)
    if (counts_[k].objects > 0) order.push_back(k);
  if (order.empty()) return "<p>Nothing was found.</p>\n";
  std::ranges::stable_sort(order, std::greater<>(),
                           [&](std::size_t k) { return counts_[k].objects; });
  std::vector<std::vector<std::string>> rows;
  for (const auto k : order)
    rows.push_back({escaped(prediction_.split.classes[k]), std::to_string(counts_[k].objects),
                    std::to_string(counts_[k].photos)});
  const std::vector<page::Column> columns = {{"class", true}, {"objects"}, {"photos"}};
  return page::table(columns, rows, "narrow");
}

std::string ResultsPage::videos_html() const {
  std::vector<std::vector<std::string>> rows;
  std::string players;
  for (const auto& video : videos_) {
    std::vector<std::string> counts;
    for (const auto& [name, count] : video.counts)
      counts.push_back(fmt::format("{} {}", count, name));
    auto said = counts.empty() ? std::string("nothing") : joined(counts);
    if (!video.fault.empty()) said += "; " + video.fault;
    const auto file = escaped(video.name + ".mp4");
    rows.push_back({file, std::to_string(video.frames), escaped(said)});
    if (video.frames > 0)
      players += fmt::format(
          "<figure><video controls preload=\"metadata\" style=\"max-width:100%\" src=\"{}\">"
          "</video><figcaption>{}</figcaption></figure>\n",
          escaped(relative_url(video.name + ".mp4")), file);
  }
  const std::vector<page::Column> columns = {
      {"video", true}, {"frames"}, {"objects, in all frames together", true}};
  return page::table(columns, rows, "wrapped") + players;
}

}  // namespace millrace::cli
