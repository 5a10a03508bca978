// trainer predict: detect in image files; pictures to look at, and a COCO results file.
#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/log.h"
#include "millrace/base/text.h"
#include "millrace/cli/arguments.h"
#include "millrace/cli/command.h"
#include "millrace/coco/data/records.h"
#include "millrace/coco/drawing/draw.h"
#include "millrace/dataflow/image/image_file.h"
#include "millrace/detector/make_detector.h"
#include "millrace/trainer/evaluation.h"
#include "millrace/trainer/run/session.h"

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

/// Takes a file that failed, and a sentence that names it and says why.
using Fail = std::function<void(const fs::path& file, const std::string& what)>;

/// A data set of these files with ids 1, 2, ... and without objects; `source` names it in messages.
/// What cannot be decoded fails and is left out.
std::shared_ptr<const coco::Dataset> as_dataset(const std::vector<fs::path>& files,
                                                coco::Records records, const std::string& source,
                                                const Fail& fail) {
  for (const auto& file : files) {
    try {
      const auto size =
          decode_rgb(read_image_file(file), file.string(), {}, /*strict=*/false).size();
      records.add_image(std::ssize(records.images) + 1, fs::absolute(file).string(), size.width,
                        size.height);
    } catch (const std::exception& problem) {
      fail(file, problem.what());
    }
  }
  return assemble(std::move(records), source);
}

/// The images and categories that the numbers in the results file stand for, as COCO writes them.
void write_key(const fs::path& file, const coco::Dataset& dataset) {
  Json images = Json::array(), names = Json::array();
  for (const auto& image : dataset.images)
    images.push_back({{"id", image.id},
                      {"file_name", dataset.text(image.file_name)},
                      {"width", image.width},
                      {"height", image.height}});
  for (const auto& category : dataset.categories)
    names.push_back({{"id", category.id}, {"name", dataset.text(category.name)}});
  write_file_atomically(file, Json{{"images", images}, {"categories", names}}.dump());
}

/// Detects image by image, draws a picture of each and prints a line about it. An image that fails
/// does not stop the others.
class Prediction {
 public:
  Prediction(Detector& detector, const DataSplit& split, const PredictArguments& arguments,
             const Fail& fail)
      : detector_(detector), split_(split), arguments_(arguments), fail_(fail) {}

  void detect_in(const Batch& batch) {
    std::vector<std::vector<DetectedObject>> found;
    try {
      found = detect_with(detector_, batch);
    } catch (const Error& problem) {
      for (const auto& image : batch.images) fail(image.image_id, problem.what());
      return;
    }
    for (std::size_t i = 0; i < found.size(); ++i) take(batch.images[i].image_id, found[i]);
  }

  /// Fails the images that no batch had.
  void tell_of_missing() {
    for (const auto& image : split_.annotations->images)
      if (!seen_.contains(image.id)) fail(image.id, "it could not be read");
  }

  const coco::Detections& detections() const { return detections_; }

 private:
  void take(std::int64_t id, const std::vector<DetectedObject>& found) {
    seen_.insert(id);
    for (const auto& object : found)
      if (auto one = as_coco(object, id, split_.category_ids); one.category_id != kNoCategory)
        detections_.add(one);
    try {
      draw(*split_.annotations->find_image(id), found);
    } catch (const std::exception& problem) {  // OpenCV's, too
      fail(id, problem.what());
    }
  }

  void draw(const coco::Image& image, const std::vector<DetectedObject>& found) {
    std::vector<coco::Overlay> shown;
    std::map<std::string, int> counts;
    for (const auto& object : found) {
      const auto label = static_cast<std::size_t>(object.label);
      if (object.score < arguments_.score || split_.category_ids.at(label) == kNoCategory) continue;
      shown.push_back(
          {.box = object.box, .label = object.label, .score = object.score, .mask = object.mask});
      ++counts[split_.classes.at(label)];
    }
    const fs::path file = split_.annotations->text(image.file_name);
    const auto pixels = decode_rgb(read_file(file), file.string(),
                                   cv::Size(image.width, image.height), /*strict=*/false);
    // The image's own name; numbered where two folders have the same
    const auto stem = file.stem().string();
    const auto picture =
        arguments_.out /
        (taken_[stem]++ == 0 ? stem + ".jpg" : fmt::format("{}-{}.jpg", stem, image.id));
    coco::write_picture(picture, coco::draw_objects(pixels, shown, split_.classes));
    std::vector<std::string> said;
    for (const auto& [name, count] : counts) said.push_back(fmt::format("{} {}", count, name));
    print_text(fmt::format("{}: {}\n", picture.string(), said.empty() ? "nothing" : joined(said)));
  }

  void fail(std::int64_t id, const std::string& why) {
    seen_.insert(id);
    const std::string file(split_.annotations->text(split_.annotations->find_image(id)->file_name));
    fail_(file, file + ": " + why);
  }

  Detector& detector_;
  const DataSplit& split_;
  const PredictArguments& arguments_;
  const Fail& fail_;
  coco::Detections detections_;
  std::set<std::int64_t> seen_;
  std::map<std::string, int> taken_;  // names of pictures
};

int predict(const PredictArguments& arguments) {
  auto [recipe, weights] = arguments.model.load();
  recipe.data.on_error = OnError::skip;
  recipe.data.max_skipped = 1;
  const Session session(recipe);
  const auto files = find_images(arguments.images);
  const auto card = checked_card(weights, recipe);
  std::vector<std::string> failed;
  const Fail fail = [&](const fs::path& file, const std::string& what) {
    spdlog::warn("failed: {}", what);
    failed.push_back(file.string());
  };
  const auto images =
      as_dataset(files, categories(card, recipe, arguments.model.force), weights.file, fail);
  auto split = make_split(images, "", recipe.data.classes);
  if (card) split = labelled_by(*card, split, recipe, weights);
  const auto detector = session.make_trained_detector(split.classes, weights);
  make_writable_folder(arguments.out);

  Prediction prediction(*detector, split, arguments, fail);
  if (!images->images.empty())
    go_through(session.passes_over(split).start({}), {}, [&](const Batch& batch) {
      prediction.detect_in(batch);
      return true;
    });
  prediction.tell_of_missing();
  coco::write_detections(arguments.out / "detections.json", prediction.detections());
  write_key(arguments.out / "images.json", *split.annotations);
  if (failed.empty()) return kDone;
  const auto shown = std::min(failed.size(), std::size_t{5});
  throw Error(fmt::format("{} of {} failed: {}{}; what came of the others is in {}", failed.size(),
                          counted(std::ssize(files), "image"), joined({failed.data(), shown}),
                          shown < failed.size() ? ", ..." : "", arguments.out.string()));
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
