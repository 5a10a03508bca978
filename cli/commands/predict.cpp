// trainer predict: detects objects in image and video files; writes annotated pictures and COCO
// results.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/log.h"
#include "millrace/base/text.h"
#include "millrace/cli/arguments.h"
#include "millrace/cli/command.h"
#include "millrace/cli/predict/photos.h"
#include "millrace/cli/predict/results_page.h"
#include "millrace/cli/predict/video.h"
#include "millrace/coco/data/records.h"
#include "millrace/dataflow/image/image_file.h"
#include "millrace/tools/video/open_video.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

struct PredictArguments {
  ModelArguments model;
  std::vector<fs::path> images;
  fs::path out;
  std::string truth;  // annotations with the image ids to use; empty = 1, 2, ...
  double score = 0.5;
};

/// Returns the categories of the model's labels: those of the weights' card if there is one;
/// otherwise data.classes, numbered from 1, if they are set and data.root does not exist; otherwise
/// those of the validation split.
coco::Records categories(const std::optional<ModelCard>& card, const Recipe& recipe, bool force) {
  const auto& asked = recipe.data.classes;
  coco::Records result;
  const auto add = [&](const std::vector<std::string>& names,
                       const std::vector<std::int64_t>& ids) {
    for (std::size_t k = 0; k < names.size(); ++k)
      result.add_category(ids.empty() ? static_cast<std::int64_t>(k) + 1 : ids[k], names[k]);
  };
  if (card) {
    const bool renamed = force && asked.size() == card->classes.size() && !asked.empty();
    add(renamed ? asked : card->classes, card->category_ids);
  } else if (!asked.empty() && !fs::exists(recipe.data.root)) {
    add(asked, {});
  } else {
    const auto split = open_split(recipe.data, recipe.data.val);
    add(split.classes, split.category_ids);
  }
  return result;
}

struct Files {
  std::vector<fs::path> photos, videos;
};

/// Returns the photos and videos in `paths`. Files are distinguished by extension. Folders are
/// searched for images by extension, without their subfolders. Throws Error if a path does not
/// exist or there is no image or video at all.
Files find_files(const std::vector<fs::path>& paths) {
  Files files;
  for (const auto& path : paths) {
    if (!fs::exists(path)) throw Error(path.string() + ": not found");
    const bool is_folder = fs::is_directory(path);
    const auto found = is_folder ? images_in(path) : std::vector{path};
    auto& to = !is_folder && is_video(path) ? files.videos : files.photos;
    to.insert(to.end(), found.begin(), found.end());
  }
  if (files.photos.empty() && files.videos.empty())
    throw Error(paths.front().string() + ": no image found");
  return files;
}

/// Returns the number of equal trailing components of two paths.
std::size_t shared_parts(const fs::path& a, const fs::path& b) {
  const std::vector<fs::path> left(a.begin(), a.end()), right(b.begin(), b.end());
  const auto [end, other] = std::mismatch(left.rbegin(), left.rend(), right.rbegin(), right.rend());
  return static_cast<std::size_t>(end - left.rbegin());
}

void refuse(const FailedPhotos& files, std::size_t all, const std::string& what) {
  if (files.count > 0) throw Error(files.text(all, "image", what));
}

/// Returns the image id of each file, matched by file name; if several images have the name, the
/// one whose path shares the most trailing folders with the file's. Throws Error that lists the
/// files that match no image, match several, or share one.
std::vector<std::int64_t> image_ids(const coco::Dataset& truth,
                                    const std::vector<fs::path>& files) {
  std::multimap<std::string, const coco::Image*> by_name;
  for (const auto& image : truth.images)
    by_name.emplace(fs::path(truth.text(image.file_name)).filename().string(), &image);
  std::vector<std::int64_t> ids;
  std::map<std::int64_t, fs::path> taken;
  FailedPhotos unknown, ambiguous, repeated;
  for (const auto& file : files) {
    const auto path = fs::absolute(file).lexically_normal();
    const coco::Image* best = nullptr;
    std::size_t most = 0, equal = 0;
    const auto [first, last] = by_name.equal_range(path.filename().string());
    for (auto at = first; at != last; ++at) {
      const auto shared = shared_parts(path, fs::path(truth.text(at->second->file_name)));
      if (shared < most) continue;
      equal = shared == most ? equal + 1 : 1;
      most = shared;
      best = at->second;
    }
    if (!best) {
      unknown.add(file);
      continue;
    }
    if (equal > 1) ambiguous.add(file);
    if (!taken.emplace(best->id, file).second) repeated.add(file);
    ids.push_back(best->id);
  }
  refuse(unknown, files.size(), "not in " + truth.source);
  refuse(ambiguous, files.size(), "match several images of " + truth.source);
  refuse(repeated, files.size(), "match the same image as another photo, in " + truth.source);
  return ids;
}

/// Returns the videos that failed completely or partly.
FailedPhotos predict_videos(const Prediction& prediction, const std::vector<fs::path>& videos,
                            ResultsPage& page) {
  FailedPhotos failed;
  std::map<std::string, int> taken;
  for (const auto& video : videos) {
    const auto stem = video.stem().string();
    const auto count = ++taken[stem];
    VideoResult result{.name = count > 1 ? fmt::format("{}-{}", stem, count) : stem};
    try {
      result = predict_video(prediction, video, result.name);
    } catch (const Error& problem) {
      result.fault = problem.what();
    }
    page.add_video(result);
    if (result.fault.empty()) continue;
    log_warning("failed: {}", result.fault);
    failed.add(video);
  }
  return failed;
}

void throw_if_failed(const FailedPhotos& failed, std::size_t all, const char* noun,
                     const fs::path& out) {
  if (failed.count > 0)
    throw Error(failed.text(all, noun, "failed") + "; results of the others are in " +
                out.string());
}

int predict(const PredictArguments& arguments) {
  const auto [recipe, weights] = arguments.model.load();
  const Session session(recipe);
  const auto [files, videos] = find_files(arguments.images);
  const auto card = checked_card(weights, recipe);
  std::vector<std::int64_t> ids;
  auto split =
      make_split(arguments.truth.empty()
                     ? assemble(categories(card, recipe, arguments.model.force), weights.file)
                     : read_annotations(arguments.truth, recipe.data),
                 "", recipe.data.classes);
  if (!arguments.truth.empty()) ids = image_ids(*split.annotations, files);
  if (card) split = labelled_by(*card, split, recipe, weights);
  const auto detector = session.make_trained_detector(split.classes, weights);
  make_writable_folder(arguments.out);
  const Prediction prediction{session,      *detector,     split,
                              weights.file, arguments.out, arguments.score};
  ResultsPage shown(prediction);
  FailedPhotos photos;
  if (!files.empty()) photos = predict_photos(prediction, files, ids, shown);
  const auto failed = predict_videos(prediction, videos, shown);
  if (!videos.empty()) shown.write();
  throw_if_failed(photos, files.size(), "image", arguments.out);
  throw_if_failed(failed, videos.size(), "video", arguments.out);
  const auto page = arguments.out / "index.html";
  suggest_next("{}; --score changes the minimum score of drawn objects, now {}",
               fs::exists(page) ? "open " + page.string() : "see " + arguments.out.string(),
               arguments.score);
  return kDone;
}

}  // namespace

void add_predict(CLI::App& app, Action& action) {
  auto [command, arguments] = add_subcommand(app, action, "predict", predict);
  arguments.model.add_to(command);
  command.add_option("IMAGE", arguments.images, "image files, folders of images, or videos")
      ->required();
  add_option(command, "--out", arguments.out, "DIR",
             "folder for the pictures, index.html, detections.json and images.json; for a video "
             "NAME.mp4 and NAME.jsonl")
      ->required();
  add_option(command, "--gt", arguments.truth, "FILE",
             "annotations of the same images (COCO's instances_*.json); detections.json uses their "
             "ids, matched by the names of files and categories");
  command
      .add_option("--score", arguments.score,
                  "minimum score of drawn objects; detections.json has all objects")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0));
  add_examples(command, {"trainer predict model.safetensors photos/ --out seen",
                         "trainer predict model.safetensors street.mp4 --out seen",
                         "trainer predict model.safetensors val2017 --out seen --gt "
                         "annotations/instances_val2017.json",
                         "trainer predict configs/maskrcnn.toml --weights "
                         "runs/maskrcnn/checkpoints/latest data/sample/val2017 --out seen",
                         "trainer predict configs/maskrcnn.toml --weights model.safetensors "
                         "photo.jpg --out seen --score 0.7"});
}

}  // namespace millrace::cli
