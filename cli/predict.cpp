// trainer predict: detect in image files; pictures to look at, and a COCO results file.
#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <memory>

#include "base/files.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/config_arguments.h"
#include "cli/image_files.h"
#include "cli/sample_data.h"
#include "cli/trained_detector.h"
#include "coco/draw.h"
#include "dataflow/detection.h"
#include "dataflow/image_file.h"
#include "trainer/evaluation.h"
#include "trainer/threads.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  ConfigArguments config;
  std::string weights;
  std::vector<fs::path> images;
  fs::path out;
  double score = 0.5;
};

/// The categories that the model's labels stand for: those of the validation split where it is there,
/// else data.classes numbered from 1.
coco::Records categories(const Recipe& recipe) {
  coco::Records result;
  if (!recipe.data.classes.empty() && !fs::exists(recipe.data.root)) {
    for (const auto& name : recipe.data.classes)
      result.add_category(static_cast<std::int64_t>(result.categories.size()) + 1, name);
    return result;
  }
  make_sample_on_first_use(recipe);
  const auto split = open_split(recipe.data, recipe.data.val);
  for (std::size_t k = 0; k < split.classes.size(); ++k)
    result.add_category(split.category_ids[k], split.classes[k]);
  return result;
}

/// Writes what was found in one image into the folder, and says it in a line.
class PictureWriter {
 public:
  PictureWriter(fs::path folder, const DataSplit& split, double score)
      : folder_(std::move(folder)), split_(split), score_(score) {}

  void write(const coco::Image& image, std::span<const DetectedObject> objects) {
    std::vector<coco::Overlay> shown;
    std::map<std::string, int> counts;
    for (const auto& object : objects) {
      if (object.score < score_) continue;
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
    fmt::print("{}: {}\n", picture.string(), said.empty() ? "nothing" : joined(said));
  }

 private:
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

int predict(const Arguments& arguments) {
  auto recipe = arguments.config.load();
  recipe.data.max_skipped = 1;
  const Threads threads(recipe.train.threads, recipe.data.threads);
  const auto split = make_split(as_dataset(find_images(arguments.images), categories(recipe)), "",
                                recipe.data.classes);
  const auto detector = trained_detector(recipe, split.classes, arguments.weights);
  make_writable_folder(arguments.out);

  PictureWriter pictures(arguments.out, split, arguments.score);
  coco::Detections detections;
  const auto flow = start_eval_flow(recipe.data, split);
  while (const auto delivery = flow->next()) {
    const auto found = detect_with(*detector, delivery->value);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const auto id = delivery->value.images[i].image_id;
      for (const auto& object : found[i]) detections.add(as_coco(object, id, split.category_ids));
      pictures.write(*split.annotations->find_image(id), found[i]);
    }
  }
  coco::write_detections(arguments.out / "detections.json", detections);
  write_key(arguments.out / "images.json", *split.annotations);
  return kDone;
}

}  // namespace

void add_predict(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "predict", "Detect in image files: pictures with masks and names, and a COCO results file");
  auto arguments = std::make_shared<Arguments>();
  arguments->config.add_to(*command);
  command->add_option("IMAGE", arguments->images, "image files, or folders of them")->required();
  command
      ->add_option("--weights", arguments->weights,
                   "a checkpoint folder, .safetensors, .pth, .pkl or .npz")
      ->required()
      ->type_name("W");
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
