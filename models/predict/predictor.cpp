#include "millrace/models/predict/predictor.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <mutex>
#include <numeric>
#include <utility>

#include "millrace/models/detector/make_detector.h"
#include "millrace/models/predict/test_image.h"
#include "millrace/models/weights/formats.h"
#include "millrace/models/weights/model_card.h"
#include "millrace/models/weights/weights.h"

namespace millrace {
namespace {

ModelCard card_of(const std::filesystem::path& file) {
  auto card = read_card(file);
  if (!card || card->classes.empty() || card->data.table().empty())
    throw Error(
        fmt::format("{} has no model card, or one without classes and preprocessing; use the "
                    "model.safetensors of a checkpoint of this version",
                    file.string()));
  if (card->category_ids.empty()) {
    card->category_ids.resize(card->classes.size());
    std::iota(card->category_ids.begin(), card->category_ids.end(), 1);
  }
  return *std::move(card);
}

std::unique_ptr<Detector> detector_of(const ModelCard& card, const std::string& file) {
  auto detector = make_detector(component_type(card.model, "detector"), card.model,
                                {.classes = card.classes, .awaits_weights = true});
  const auto parameters = detector->parameters().size();
  check_all_loaded(load_weights(detector->parameters(), file), parameters, file);
  // Without training, layers fold frozen norms into their weights once.
  for (const auto& parameter : detector->parameters()) parameter.value.requires_grad_(false);
  detector->parameters_changed();
  return detector;
}

}  // namespace

struct Predictor::Model {
  explicit Model(const std::filesystem::path& file)
      : card(card_of(file)),
        test_time(read_options<DataOptions>(card.data)),
        detector(detector_of(card, file.string())) {}

  const ModelCard card;
  const TestTime test_time;
  const std::unique_ptr<Detector> detector;
  int threads = 1;
  std::mutex detects;  // held during a detection
};

Predictor::Predictor(const std::filesystem::path& model, const PredictorOptions& options) {
  if (options.threads < 0 || options.threads > kMostThreads)
    throw ConfigError(
        fmt::format("threads = {} is out of range (0 .. {})", options.threads, kMostThreads));
  static const auto available = at::get_num_threads();  // before any predictor changes it
  model_ = std::make_unique<Model>(weight_file(model));
  model_->threads = options.threads == 0 ? available : static_cast<int>(options.threads);
  if (options.precision == Precision::bf16) model_->detector->detect_in(at::kBFloat16);
}

Predictor::Predictor(Predictor&&) noexcept = default;
Predictor& Predictor::operator=(Predictor&&) noexcept = default;
Predictor::~Predictor() = default;

const std::vector<std::string>& Predictor::classes() const { return model_->card.classes; }
const std::vector<std::int64_t>& Predictor::category_ids() const {
  return model_->card.category_ids;
}
bool Predictor::gives_masks() const { return model_->detector->gives_masks(); }

Prediction Predictor::predict(const PredictorImage& image) const {
  return std::move(predict(std::span(&image, 1)).front());
}

std::vector<Prediction> Predictor::predict(std::span<const PredictorImage> images) const {
  if (images.empty()) return {};
  const std::scoped_lock lock(model_->detects);
  if (at::get_num_threads() != model_->threads) at::set_num_threads(model_->threads);
  std::vector<Sample> samples(images.size());
  at::parallel_for(0, std::ssize(images), 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      const auto name = fmt::format("image {} of {}", i + 1, images.size());
      samples[i] = prepared(images[i], model_->test_time, name);
    }
  });
  const auto batch = model_->test_time.pad(std::move(samples));
  auto found = model_->detector->detect(batch);
  std::vector<Prediction> result(images.size());
  for (std::size_t i = 0; i < images.size(); ++i)
    result[i] = {batch.images[i].original_width, batch.images[i].original_height,
                 std::move(found[i])};
  return result;
}

std::vector<std::uint8_t> Predictor::bitmap(const coco::Rle& mask) {
  const auto pixels = std::uint64_t{mask.height} * mask.width;
  if (std::accumulate(mask.counts.begin(), mask.counts.end(), std::uint64_t{0}) != pixels)
    throw Error(fmt::format("the run lengths of a mask do not sum to its {} x {} pixels",
                            mask.width, mask.height));
  std::vector<std::uint8_t> result(pixels);
  coco::decode(mask, result.data());
  return result;
}

}  // namespace millrace
