// trainer export: exports a trained model to an ONNX file.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/cli/arguments.h"
#include "millrace/cli/carried_files.h"
#include "millrace/cli/command.h"
#include "millrace/dataflow/detection/test_time.h"
#include "millrace/dataflow/image/image_file.h"
#include "millrace/models/export/certificate.h"
#include "millrace/models/export/export_model.h"
#include "millrace/models/weights/formats.h"
#include "millrace/models/weights/sealed_folder.h"
#include "millrace/trainer/run/session.h"
#include "millrace/trainer/run/trained_model.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

struct ExportArguments {
  std::string model;
  fs::path out;
  std::vector<std::string> overrides;
  ExportOptions options;
  std::string weights = "fp32";
  std::vector<fs::path> photos;
  fs::path check;
  std::string python = "python3";
};

constexpr std::size_t kPhotos = 4;  // taken from a validation split

/// Returns the first photos of the validation split of the run that the weights come from.
std::vector<fs::path> photos_of_run(const std::string& weights, DataOptions data) {
  const auto origin = origin_of(weight_file(weights));
  if (!origin)
    throw ConfigError(weights +
                      " is not in a run's checkpoint, so its validation images are unknown; give "
                      "images with --photos");
  const auto config = parse_config(origin->config, weights + ", config.toml");
  for (const auto& [key, value] : {std::pair{"data.root", &data.root}, {"data.val", &data.val}})
    if (const auto* own = value_at<std::string>(config, key)) *value = *own;
  data.classes.clear();
  const auto split = [&] {
    try {
      return open_split(data, data.val);
    } catch (const Error& problem) {
      throw ConfigError(
          fmt::format("the certificate needs images, but the run's validation split is missing "
                      "({}); give images with --photos",
                      problem.what()));
    }
  }();
  std::vector<fs::path> files;
  for (const auto& image : split.annotations->images)
    if (files.size() < kPhotos)
      files.push_back(split.images / split.annotations->text(image.file_name));
  return files;
}

/// Reads the photos of the certificate as `trainer predict` would.
std::vector<NamedPixels> read_photos(const ExportArguments& arguments, const std::string& weights,
                                     const DataOptions& data) {
  std::vector<fs::path> files;
  for (const auto& path : arguments.photos) {
    const auto found = fs::is_directory(path) ? images_in(path) : std::vector{path};
    files.insert(files.end(), found.begin(), found.end());
  }
  if (arguments.photos.empty()) files = photos_of_run(weights, data);
  if (files.empty()) throw ConfigError("the certificate needs images, but --photos contains none");
  const TestTime how(data);
  std::vector<NamedPixels> photos;
  for (const auto& file : files)
    photos.push_back({file.filename().string(),
                      how.photo(file.string(), read_image_file(file.string())).image.pixels()});
  return photos;
}

int export_to_onnx(const ExportArguments& arguments) {
  if (!names_model(arguments.model))
    throw ConfigError(
        arguments.model +
        " is not a model; give a run folder, a checkpoint folder or a model.safetensors");
  const auto [loaded, weights] =
      ModelArguments{.model = arguments.model, .overrides = arguments.overrides}.load();
  const auto card = checked_card(weights, loaded);
  if (card->data.table().empty())
    throw Error(weights.file +
                " is of an older version and does not record how images are prepared; resume its "
                "run for a step to write a new one");
  auto options = arguments.options;
  options.storage = arguments.weights == "fp16" ? onnx::Storage::fp16 : onnx::Storage::fp32;
  const Session session(loaded);
  const auto& recipe = session.recipe();
  const auto photos = read_photos(arguments, weights.file, recipe.data);
  const auto detector = session.make_trained_detector(card->classes, weights);
  round_weights(*detector, options.storage);
  // Includes the changes by --set.
  const auto exported = model_card(recipe, card->classes, card->category_ids);
  auto files = export_model(*detector, exported, recipe.data, options, arguments.out);
  write_certificate(*detector, exported, recipe.data, options, photos, weights.file, files);
  const CertificateFiles certificate(arguments.out);
  files.insert(files.end(), {certificate.text, certificate.tensors});
  for (const auto& file : files) print_formatted("{}\n", file.string());
  suggest_next("trainer export --check {}", arguments.out.string());
  return kDone;
}

/// Runs examples/onnx/check_onnx.py, which is compiled into this program. Throws Error if the
/// outputs differ; ConfigError if no Python with onnxruntime is found.
int check_export(const ExportArguments& arguments) {
  check_certificate(arguments.check);
  print_formatted("{}: the files match the certificate\n", arguments.check.string());
  std::fflush(stdout);
  ::setenv("MILLRACE_PYTHON", arguments.python.c_str(), 1);
  ::setenv("MILLRACE_SCRIPT", kOnnxCheckScript, 1);
  ::setenv("MILLRACE_MODEL", arguments.check.c_str(), 1);
  if (std::system("\"$MILLRACE_PYTHON\" -c 'import onnxruntime' 2>/dev/null") != 0)
    throw ConfigError(
        fmt::format("{} has no onnxruntime to run the model; pip install onnxruntime numpy, or "
                    "give another Python with --python",
                    arguments.python));
  if (std::system("exec \"$MILLRACE_PYTHON\" -c \"$MILLRACE_SCRIPT\" \"$MILLRACE_MODEL\"") != 0)
    throw Error(arguments.check.string() +
                ": results of onnxruntime differ from the certificate; see above");
  suggest_next("docs/predict.md shows how to use the file in C++ and Python");
  return kDone;
}

int work(const ExportArguments& arguments) {
  if (!arguments.check.empty()) return check_export(arguments);
  if (arguments.model.empty() || arguments.out.empty())
    throw ConfigError("give MODEL and --out FILE, or --check FILE");
  if (arguments.out.extension() != ".onnx")
    throw ConfigError(arguments.out.string() + ": --out needs the name of a .onnx file");
  return export_to_onnx(arguments);
}

}  // namespace

void add_export(CLI::App& app, Action& action) {
  auto [command, arguments] = add_subcommand(app, action, "export", work);
  command.add_option("MODEL", arguments.model,
                     "run folder, checkpoint folder, or model.safetensors");
  add_option(command, "--out", arguments.out, "FILE",
             "ONNX file to write; its certificate is written beside it");
  add_renamed(command, "--to", "--out");
  command.add_flag("--padded", arguments.options.padded,
                   "take a batch of resized and padded images (N, H, W, 3) and their sizes (N, 2), "
                   "instead of one image of any size");
  command.add_flag("--pasted", arguments.options.pasted,
                   "output masks over the whole image instead of over each box");
  command
      .add_option("--weights", arguments.weights,
                  "storage type: fp32, or fp16 for half the file size, cast to fp32 when used")
      ->check(CLI::IsMember({"fp32", "fp16"}))
      ->capture_default_str();
  add_option(command, "--set", arguments.overrides, "K=V",
             "value of a key of the model, such as model.test.score_thresh=0.3; may be repeated")
      ->allow_extra_args(false);
  add_option(command, "--photos", arguments.photos, "PATH",
             "images, or folders of images, for the certificate; default: the first of the run's "
             "validation split");
  add_option(command, "--check", arguments.check, "FILE",
             "ONNX file to check with onnxruntime against its certificate, instead of exporting");
  command.add_option("--python", arguments.python, "Python with onnxruntime for --check")
      ->capture_default_str();
  add_examples(command,
               {"trainer export runs/maskrcnn-1 --out model.onnx",
                "trainer export model.safetensors --out model.onnx --photos photos/ --weights fp16",
                "trainer export --check model.onnx"});
}

}  // namespace millrace::cli
