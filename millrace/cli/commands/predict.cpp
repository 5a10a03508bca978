// trainer predict: detect in image files; pictures to look at, and a COCO results file.
#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/log.h"
#include "millrace/base/text.h"
#include "millrace/cli/command.h"
#include "millrace/cli/config_arguments.h"
#include "millrace/cli/image_files.h"
#include "millrace/cli/weight_arguments.h"
#include "millrace/coco/drawing/draw.h"
#include "millrace/dataflow/image/image_file.h"
#include "millrace/trainer/detector/make_detector.h"
#include "millrace/trainer/evaluation.h"
#include "millrace/trainer/run/session.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

struct PredictArguments {
  ConfigArguments config;
  WeightArguments weights;
  std::vector<fs::path> images;
  fs::path out;
  double score = 0.5;
};

/// The categories that the model's labels stand for: as the weights say; where they do not,
/// data.classes numbered from 1 or, if it is there, those of the validation split.
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

/// The files that nothing came of, and why: said at once, and counted for the end.
class Failures {
 public:
  /// `what` names the file.
  void add(const fs::path& file, const std::string& what) {
    spdlog::warn("failed: {}", what);
    files_.push_back(file.string());
  }

  /// Throws Error naming the first ones where there are any; `all` files were asked for, the others
  /// lie in `out`.
  void tell(std::size_t all, const fs::path& out) const {
    constexpr std::size_t kMost = 5;
    if (files_.empty()) return;
    const auto shown = std::min(files_.size(), kMost);
    throw Error(fmt::format("{} of {} failed: {}{}; what came of the others is in {}",
                            files_.size(), counted(static_cast<long long>(all), "image"),
                            joined({files_.data(), shown}), shown < files_.size() ? ", ..." : "",
                            out.string()));
  }

 private:
  std::vector<std::string> files_;
};

/// Writes what was found in one image into the folder, and says it in a line.
class PictureWriter {
 public:
  PictureWriter(fs::path folder, const DataSplit& split, double score)
      : folder_(std::move(folder)), split_(split), score_(score) {}

  void write(const coco::Image& image, std::span<const DetectedObject> objects) {
    std::vector<coco::Overlay> shown;
    std::map<std::string, int> counts;
    for (const auto& object : objects) {
      if (object.score < score_ || !is_wanted(object)) continue;
      shown.push_back(
          {.box = object.box, .label = object.label, .score = object.score, .mask = object.mask});
      ++counts[split_.classes.at(static_cast<std::size_t>(object.label))];
    }
    const cv::Size size(image.width, image.height);
    const fs::path file = split_.annotations->text(image.file_name);
    const auto pixels = decode_rgb(read_file(file), file.string(), size, /*strict=*/false);
    const auto picture = folder_ / name_for(file, image.id);
    coco::write_picture(picture, coco::draw_objects(pixels, shown, split_.classes));
    std::vector<std::string> said;
    for (const auto& [name, count] : counts) said.push_back(fmt::format("{} {}", count, name));
    print_text(fmt::format("{}: {}\n", picture.string(), said.empty() ? "nothing" : joined(said)));
  }

 private:
  bool is_wanted(const DetectedObject& object) const {
    return split_.category_ids.at(static_cast<std::size_t>(object.label)) != kNoCategory;
  }

  /// The image's own name; numbered where two folders have the same.
  std::string name_for(const fs::path& file, std::int64_t id) {
    const auto stem = file.stem().string();
    return taken_[stem]++ == 0 ? stem + ".jpg" : fmt::format("{}-{}.jpg", stem, id);
  }

  fs::path folder_;
  const DataSplit& split_;
  double score_;
  std::map<std::string, int> taken_;
};

/// The images and categories behind the numbers in the results file, as COCO writes them.
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

/// Detects image by image. One that fails is named, and the others go on.
class Prediction {
 public:
  Prediction(Detector& detector, const DataSplit& split, PictureWriter& pictures,
             Failures& failures)
      : detector_(detector), split_(split), pictures_(pictures), failures_(failures) {}

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

  /// Names the images that no batch had.
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
      pictures_.write(*split_.annotations->find_image(id), found);
    } catch (const std::exception& problem) {  // OpenCV's, too
      fail(id, problem.what());
    }
  }

  void fail(std::int64_t id, const std::string& why) {
    seen_.insert(id);
    const std::string file(split_.annotations->text(split_.annotations->find_image(id)->file_name));
    failures_.add(file, file + ": " + why);
  }

  Detector& detector_;
  const DataSplit& split_;
  PictureWriter& pictures_;
  Failures& failures_;
  coco::Detections detections_;
  std::set<std::int64_t> seen_;
};

int predict(const PredictArguments& arguments) {
  auto recipe = arguments.config.load();
  recipe.data.on_error = OnError::skip;
  recipe.data.max_skipped = 1;
  const Session session(recipe);
  const auto files = find_images(arguments.images);
  const auto weights = arguments.weights.weights();
  const auto card = checked_card(weights, recipe);
  Failures failures;
  const auto images =
      as_dataset(files, categories(card, recipe, arguments.weights.force), arguments.weights.file,
                 [&](const auto& file, const auto& what) { failures.add(file, what); });
  auto split = make_split(images, "", recipe.data.classes);
  if (card) split = labelled_by(*card, split, recipe, weights);
  const auto detector = session.make_trained_detector(split.classes, weights);
  make_writable_folder(arguments.out);

  PictureWriter pictures(arguments.out, split, arguments.score);
  Prediction prediction(*detector, split, pictures, failures);
  if (!images->images.empty())
    go_through(session.passes_over(split).start({}), {}, [&](const Batch& batch) {
      prediction.detect_in(batch);
      return true;
    });
  prediction.tell_of_missing();
  coco::write_detections(arguments.out / "detections.json", prediction.detections());
  write_key(arguments.out / "images.json", *split.annotations);
  failures.tell(files.size(), arguments.out);
  return kDone;
}

}  // namespace

void add_predict(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "predict", "Detect in image files: pictures with masks and names, and a COCO results file");
  auto arguments = std::make_shared<PredictArguments>();
  arguments->config.add_to(*command);
  command->add_option("IMAGE", arguments->images, "image files, or folders of them")->required();
  arguments->weights.add_to(*command);
  command
      ->add_option("--out", arguments->out,
                   "folder for the pictures, detections.json and images.json")
      ->required()
      ->type_name("DIR");
  command
      ->add_option("--score", arguments->score,
                   "draw what scores at least this; detections.json has everything")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0));
  add_examples(*command, {"trainer predict configs/maskrcnn.toml --weights "
                          "runs/maskrcnn/checkpoints/latest data/sample/val2017 --out seen",
                          "trainer predict configs/maskrcnn.toml --weights model.safetensors "
                          "photo.jpg --out seen --score 0.7"});
  command->callback([=, &action] { action = [=] { return predict(*arguments); }; });
}

}  // namespace millrace::cli
