// trainer predict: detect in image files; pictures to look at, and a COCO results file.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "millrace/base/clock.h"
#include "millrace/base/digest.h"
#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/log.h"
#include "millrace/base/progress_bar.h"
#include "millrace/base/text.h"
#include "millrace/cli/arguments.h"
#include "millrace/cli/command.h"
#include "millrace/cli/predict/photo_results.h"
#include "millrace/coco/data/records.h"
#include "millrace/coco/drawing/draw.h"
#include "millrace/dataflow/detection_flows.h"
#include "millrace/dataflow/image/image_file.h"
#include "millrace/detector/make_detector.h"
#include "millrace/trainer/evaluation.h"
#include "millrace/trainer/run/device.h"
#include "millrace/trainer/run/session.h"
#include "millrace/weights/formats.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

struct PredictArguments {
  ModelArguments model;
  std::vector<fs::path> images;
  fs::path out;
  double score = 0.5;
};

/// The categories that the model's labels stand for: those of the weights' card; without one,
/// data.classes numbered from 1 or, where data.root exists, those of the validation split.
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

/// The image files among `paths`: files as they are, folders searched by extension, not below.
/// Throws Error for a path that does not exist, or where there is no image at all.
std::vector<fs::path> find_images(const std::vector<fs::path>& paths) {
  std::vector<fs::path> files;
  for (const auto& path : paths) {
    if (!fs::exists(path)) throw Error(path.string() + ": there is no such file or folder");
    const auto found = fs::is_directory(path) ? images_in(path) : std::vector{path};
    files.insert(files.end(), found.begin(), found.end());
  }
  if (files.empty()) throw Error(paths.front().string() + ": no image in it");
  return files;
}

/// What is drawn of the objects; `counts`: by class.
std::vector<coco::Overlay> overlays(const std::vector<DetectedObject>& found,
                                    const DataSplit& split, double score,
                                    std::map<std::string, int>* counts = nullptr) {
  std::vector<coco::Overlay> shown;
  for (const auto& object : found) {
    const auto label = static_cast<std::size_t>(object.label);
    if (object.score < score || split.category_ids.at(label) == kNoCategory) continue;
    shown.push_back(
        {.box = object.box, .label = object.label, .score = object.score, .mask = object.mask});
    if (counts) ++(*counts)[split.classes.at(label)];
  }
  return shown;
}

/// What the results of these files depend on.
std::uint64_t digest_of(const PredictArguments& arguments, const Recipe& recipe,
                        const std::string& weights, const std::vector<fs::path>& files) {
  const auto bytes = map_file(weight_file(weights));
  auto result = digest(bytes.data.get(), bytes.size);
  result = digest(to_toml(recipe.tree) + MILLRACE_VERSION, result);
  result = digest(arguments.score, result);
  for (const auto& file : files) {
    std::error_code unreadable;  // is said when it is its turn
    result = digest(fs::absolute(file).string(), result);
    result = digest(static_cast<std::uint64_t>(fs::file_size(file, unreadable)), result);
    result = digest(
        static_cast<std::int64_t>(fs::last_write_time(file, unreadable).time_since_epoch().count()),
        result);
  }
  return result;
}

/// Shows on a terminal how far a prediction is.
class Progress {
 public:
  explicit Progress(std::int64_t done, std::int64_t all) : before_(done), all_(all) { show(done); }
  ~Progress() {
    if (is_shown_) end_terminal_line();
  }
  Progress(const Progress&) = delete;

  /// Whether lines on standard output would tear the bar.
  bool owns_terminal() const { return is_shown_ && ::isatty(STDOUT_FILENO) != 0; }

  void show(std::int64_t done) {
    if (!is_shown_ || (done < all_ && done > before_ && seconds_since(shown_) < kRedrawSeconds))
      return;
    shown_ = Clock::now();
    const auto seconds = seconds_since(began_);
    const auto fresh = static_cast<double>(done - before_);
    auto text = progress_bar(static_cast<double>(done) / static_cast<double>(all_), kBarWidth) +
                fmt::format("image {}/{}", done, all_);
    if (fresh > 0)
      text += fmt::format("  {:.1f} images/s  {} left", fresh / seconds,
                          duration_text(static_cast<double>(all_ - done) * seconds / fresh));
    show_terminal_line(text);
  }

 private:
  static constexpr double kRedrawSeconds = 0.1;
  static constexpr int kBarWidth = 12;  // characters
  const bool is_shown_ = stderr_is_terminal();
  const std::int64_t before_, all_;
  const Clock::time_point began_ = Clock::now();
  Clock::time_point shown_;
};

/// Detects in files one after the other, draws a picture of each and prints a line about it. A file
/// that fails does not stop the others.
class PhotoPrediction {
 public:
  PhotoPrediction(Detector& detector, const DataSplit& split, const Photos& photos,
                  PhotoResults& results, double score)
      : detector_(detector),
        split_(split),
        photos_(photos),
        results_(results),
        score_(score),
        progress_(results.count(), photos.size()) {}

  void detect_in(const Batch& batch) {
    std::vector<std::vector<DetectedObject>> found;
    std::string fault;
    try {
      found = detect_with(detector_, batch);
    } catch (const Error& problem) {
      fault = problem.what();
    }
    for (std::size_t i = 0; i < batch.size(); ++i) {
      add_unusable(batch.images[i].image_id);
      if (fault.empty())
        add(found[i]);
      else
        fail(fault);
    }
    results_.save();
    progress_.show(results_.count());
  }

  /// The files up to `end` that no batch had.
  void add_unusable(std::int64_t end) {
    while (results_.count() < end) fail("it could not be read");
  }

 private:
  const fs::path& file() const { return photos_.file(results_.count()); }

  /// What is known of the next file.
  PhotoResult begun() {
    const auto photo = photos_.take(results_.count());
    PhotoResult result{
        .file = fs::absolute(file()), .width = photo.size.width, .height = photo.size.height};
    if (!photo.fault.empty()) result.fault = photo.fault;
    return result;
  }

  /// Adds the next file without detections; `why`, unless its photo has a fault of its own.
  void fail(const std::string& why) {
    auto result = begun();
    if (result.fault.empty()) result.fault = fmt::format("{}: {}", result.file.string(), why);
    spdlog::warn("failed: {}", result.fault);
    results_.add(result, {});
  }

  void add(const std::vector<DetectedObject>& objects) {
    auto result = begun();
    coco::Detections found;
    for (const auto& object : objects)
      if (auto one = as_coco(object, results_.next_id(), split_.category_ids);
          one.category_id != kNoCategory)
        found.add(one);
    try {
      draw(result, objects);
    } catch (const std::exception& problem) {  // OpenCV's, too
      result.fault = fmt::format("{}: {}", result.file.string(), problem.what());
      spdlog::warn("failed: {}", result.fault);
    }
    results_.add(result, found);
  }

  void draw(PhotoResult& result, const std::vector<DetectedObject>& objects) {
    std::map<std::string, int> counts;
    const auto shown = overlays(objects, split_, score_, &counts);
    const auto pixels = decode_rgb(read_file(result.file), result.file.string(),
                                   cv::Size(result.width, result.height), /*strict=*/false);
    const auto picture = results_.picture_of(result.file);
    result.is_drawn = true;
    coco::write_picture(picture, coco::draw_objects(pixels, shown, split_.classes));
    if (progress_.owns_terminal()) return;
    std::vector<std::string> said;
    for (const auto& [name, count] : counts) said.push_back(fmt::format("{} {}", count, name));
    print_text(fmt::format("{}: {}\n", picture.string(), said.empty() ? "nothing" : joined(said)));
  }

  Detector& detector_;
  const DataSplit& split_;
  const Photos& photos_;
  PhotoResults& results_;
  const double score_;
  Progress progress_;
};

/// Returns those that failed.
FailedPhotos predict_photos(const PredictArguments& arguments, const Session& session,
                            Detector& detector, const DataSplit& split, const std::string& weights,
                            const std::vector<fs::path>& files) {
  const auto& recipe = session.recipe();
  PhotoResults results(arguments.out, digest_of(arguments, recipe, weights, files),
                       recipe.data.test_batch_size);
  auto [photos, batches] =
      start_photo_flow(recipe.data, files, {.next = results.count(), .pending = {}});
  PhotoPrediction prediction(detector, split, *photos, results, arguments.score);
  if (results.count() < photos->size())
    go_through(upload_ahead(std::move(batches), session.device()), {}, [&](const Batch& batch) {
      prediction.detect_in(batch);
      return true;
    });
  prediction.add_unusable(photos->size());
  results.finish(*split.annotations);
  return results.failed();
}

int predict(const PredictArguments& arguments) {
  const auto [recipe, weights] = arguments.model.load();
  const Session session(recipe);
  const auto files = find_images(arguments.images);
  const auto card = checked_card(weights, recipe);
  auto split = make_split(assemble(categories(card, recipe, arguments.model.force), weights.file),
                          "", recipe.data.classes);
  if (card) split = labelled_by(*card, split, recipe, weights);
  const auto detector = session.make_trained_detector(split.classes, weights);
  const auto failed = predict_photos(arguments, session, *detector, split, weights.file, files);
  if (failed.count == 0) return kDone;
  throw Error(fmt::format("{} of {} failed: {}{}; what came of the others is in {}", failed.count,
                          counted(std::ssize(files), "image"), joined(failed.first),
                          failed.count > std::ssize(failed.first) ? ", ..." : "",
                          arguments.out.string()));
}

}  // namespace

void add_predict(CLI::App& app, Action& action) {
  auto [command, arguments] = add_subcommand(
      app, action, "predict",
      "Detect in image files: pictures with masks and names, and a COCO results file", predict);
  arguments.model.add_to(command);
  command.add_option("IMAGE", arguments.images, "image files, or folders of them")->required();
  command
      .add_option("--out", arguments.out,
                  "folder for the pictures, detections.json and images.json")
      ->required()
      ->type_name("DIR");
  command
      .add_option("--score", arguments.score,
                  "draw what scores at least this; detections.json has everything")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0));
  add_examples(command, {"trainer predict model.safetensors photos/ --out seen",
                         "trainer predict configs/maskrcnn.toml --weights "
                         "runs/maskrcnn/checkpoints/latest data/sample/val2017 --out seen",
                         "trainer predict configs/maskrcnn.toml --weights model.safetensors "
                         "photo.jpg --out seen --score 0.7"});
}

}  // namespace millrace::cli
