#include "millrace/cli/predict/photo_results.h"

#include <fmt/format.h>

#include <fstream>
#include <utility>

#include "millrace/base/digest.h"
#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/base/text.h"
#include "millrace/cli/command.h"
#include "millrace/trainer/appended_file.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;
using Line = Json;

Line head(std::uint64_t made_from) {
  return {{"millrace.predict", 1}, {"made_from", hex(made_from)}};
}

Line line_of(const PhotoResult& result, std::uint64_t end) {
  return {{"file", result.file.string()},
          {"id", result.id},
          {"width", result.width},
          {"height", result.height},
          {"drawn", result.is_drawn},
          {"fault", result.fault},
          {"end", end}};
}

PhotoResult result_in(const Line& line) {
  return {.file = line.at("file").get<std::string>(),
          .id = line.at("id").get<std::int64_t>(),
          .width = line.at("width").get<int>(),
          .height = line.at("height").get<int>(),
          .is_drawn = line.at("drawn").get<bool>(),
          .fault = line.at("fault").get<std::string>()};
}

/// Calls `take` for each complete line of a file with the line, its number (0 = header) and the
/// offset of its end in bytes, until `take` returns false.
template <class Take>
void each_line(const fs::path& file, Take take) {
  std::ifstream in(file, std::ios::binary);
  std::int64_t number = 0;
  std::uint64_t end = 0;
  for (std::string line; std::getline(in, line) && !in.eof();) {
    end += line.size() + 1;
    if (!take(line, number++, end)) return;
  }
}

}  // namespace

void FailedPhotos::add(const fs::path& file) {
  ++count;
  if (first.size() < kShown) first.push_back(file.string());
}

std::string FailedPhotos::text(std::size_t all, std::string_view noun,
                               std::string_view what) const {
  return fmt::format("{} of {} {}: {}{}", count, counted(all, noun), what, joined(first),
                     count > std::ssize(first) ? ", ..." : "");
}

PhotoResults::PhotoResults(fs::path folder, std::uint64_t made_from, std::int64_t batch)
    : folder_(std::move(folder)),
      lines_file_(folder_ / "predict.part"),
      detections_file_(folder_ / "detections.json.part"),
      lock_((make_writable_folder(folder_), folder_)) {
  if (resume(made_from, batch)) return;
  count_ = pictures_ = 0;
  failed_ = {};
  taken_.clear();
  for (const auto& file : {lines_file_, detections_file_}) fs::remove(file);
  detections_ = "[";
  written_ = 1;
  lines_ = json_text(head(made_from)) + "\n";
  save();
}

bool PhotoResults::resume(std::uint64_t made_from, std::int64_t batch) try {
  if (!fs::exists(lines_file_) || !fs::exists(detections_file_)) return false;
  std::int64_t lines = -1;  // the header does not count
  bool is_same = false;
  each_line(lines_file_, [&](const std::string& line, std::int64_t number, std::uint64_t) {
    lines = number;
    if (number == 0) is_same = line == json_text(head(made_from));
    return is_same;
  });
  if (!is_same) {
    if (lines >= 0)
      log_warning("{} was made from other photos, weights or options; starting over",
                  lines_file_.string());
    return false;
  }
  const auto whole = lines - lines % batch;
  std::uint64_t end = 0, detections_end = 1;
  each_line(lines_file_, [&](const std::string& text, std::int64_t number, std::uint64_t line_end) {
    if (number > whole) return false;
    end = line_end;
    if (number == 0) return true;
    const auto line = Line::parse(text);
    detections_end = line.at("end").get<std::uint64_t>();
    count(result_in(line));
    return true;
  });
  if (fs::file_size(detections_file_) < detections_end) return false;
  cut_file(lines_file_, end);
  cut_file(detections_file_, detections_end);
  written_ = detections_end;
  if (count_ > 0)
    log_info("resuming after {}, listed in {}", counted(count_, "file"), lines_file_.string());
  return true;
} catch (const nlohmann::json::exception&) {
  log_warning("{} is damaged; starting over", lines_file_.string());
  return false;
}

void PhotoResults::count(const PhotoResult& result) {
  ++count_;
  if (result.width > 0) ++pictures_;
  if (result.is_drawn) ++taken_[result.file.stem().string()];
  if (!result.fault.empty()) failed_.add(result.file);
}

fs::path PhotoResults::picture_of(const fs::path& photo) const {
  const auto stem = photo.stem().string();
  return folder_ /
         (taken_.contains(stem) ? fmt::format("{}-{}.jpg", stem, pictures_ + 1) : stem + ".jpg");
}

void PhotoResults::add(const PhotoResult& result, const coco::Detections& found) {
  std::string texts;
  for (std::size_t i = 0; i < found.size(); ++i) {
    texts += written_ == 1 && i == 0 ? "\n" : ",\n";
    texts += result_text(found, i);
  }
  detections_ += texts;
  written_ += texts.size();
  count(result);
  lines_ += json_text(line_of(result, written_)) + "\n";
}

void PhotoResults::save() {
  // Detections are written before the lines that refer to them.
  if (!detections_.empty()) append_to(detections_file_, std::exchange(detections_, {}));
  if (!lines_.empty()) append_to(lines_file_, std::exchange(lines_, {}));
}

void PhotoResults::each(const Use& use) const {
  const InputFile detections(detections_file_);
  std::uint64_t begin = 1;  // after the bracket
  std::string text;
  each_line(lines_file_, [&](const std::string& one, std::int64_t number, std::uint64_t) {
    if (number == 0) return true;
    const auto line = Line::parse(one);
    const auto end = line.at("end").get<std::uint64_t>();
    text.resize(end - begin);
    detections.read(begin, text);
    begin = end;
    use(result_in(line), text);
    return true;
  });
}

void PhotoResults::finish(const coco::Dataset& categories) {
  save();
  std::string images = R"({"images":[)";
  bool is_first = true;
  each_line(lines_file_, [&](const std::string& text, std::int64_t number, std::uint64_t) {
    if (number == 0) return true;
    const auto line = Line::parse(text);
    if (line.at("width") == 0) return true;
    if (!std::exchange(is_first, false)) images += ',';
    images += json_text({{"id", line.at("id")},
                         {"file_name", line.at("file")},
                         {"width", line.at("width")},
                         {"height", line.at("height")}});
    return true;
  });
  Line names = Line::array();
  for (const auto& category : categories.categories)
    names.push_back({{"id", category.id}, {"name", categories.text(category.name)}});
  images += R"(],"categories":)" + json_text(names) + "}";
  write_file_atomically(folder_ / "images.json", images);
  append_to(detections_file_, "\n]\n");
  sync_path(detections_file_);
  fs::rename(detections_file_, folder_ / "detections.json");
  fs::remove(lines_file_);
}

}  // namespace millrace::cli
