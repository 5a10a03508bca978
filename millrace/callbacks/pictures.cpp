// [callbacks.pictures]: what the detector finds in a few validation images, beside the annotations.
#include <fmt/format.h>

#include <exception>

#include "millrace/base/files.h"
#include "millrace/base/log.h"
#include "millrace/coco/drawing/draw.h"
#include "millrace/dataflow/image/image_file.h"
#include "millrace/detector/make_detector.h"
#include "millrace/trainer/callback.h"
#include "millrace/trainer/evaluation.h"
#include "millrace/trainer/train_state.h"

namespace millrace {
namespace {

struct PicturesOptions {
  std::string every = "1 epoch";
  std::int64_t count = 4;
  double score = 0.5;

  void describe(Options& o) {
    o.add("every", every, "how often; also after the last step");
    o.add("count", count, "of validation images, from the first", {.min = 1, .unit = "images"});
    o.add("score", score, "objects below it are not drawn", {.min = 0, .max = 1});
  }
};

class DrawPictures final : public Callback {
 public:
  using Options = PicturesOptions;
  static constexpr bool kByDefault = true;

  explicit DrawPictures(const Options& options) : count_(options.count), score_(options.score) {}

  /// An observer's failure ends no training.
  void trigger(TrainState& state) override {
    if (!state.validation) return;
    try {
      draw_all(state);
    } catch (const std::exception& problem) {
      spdlog::warn("callback '{}': no more pictures of step {}: {}", state.caller, state.at.step,
                   problem.what());
    }
  }

  void after_train(TrainState& state) override {
    if (!folder_.empty()) spdlog::info("pictures are in {}", (state.folder / "pictures").string());
  }

 private:
  void draw_all(TrainState& state) {
    const auto folder = state.folder / "pictures" / fmt::format("step-{:06}", state.at.step);
    make_writable_folder(folder);
    folder_ = folder;
    std::int64_t drawn = 0;
    const auto watch = state.pass_watch();
    go_through(state.validation->start({}), watch, [&](const Batch& batch) {
      const auto found = detect_with(state.model, batch);
      for (std::size_t i = 0; i < found.size() && drawn < count_ && !watch.cancelled();
           ++i, ++drawn)
        draw_or_warn(state, batch.images[i].image_id, found[i]);
      return drawn < count_;
    });
  }

  void draw_or_warn(TrainState& state, std::int64_t image_id,
                    const std::vector<DetectedObject>& found) const {
    const auto& split = state.validation->split;
    const auto& image = *split.annotations->find_image(image_id);
    const auto file = split.images / split.annotations->text(image.file_name);
    try {
      draw(state, image, file, found);
    } catch (const std::exception& problem) {
      spdlog::warn("callback '{}': {} has no picture: {}", state.caller, file.string(),
                   problem.what());
    }
  }

  void draw(TrainState& state, const coco::Image& image, const std::filesystem::path& file,
            const std::vector<DetectedObject>& found) const {
    const auto& split = state.validation->split;
    const auto& truth = *split.annotations;
    const auto pixels =
        decode_rgb(read_file(file), file.string(), cv::Size(image.width, image.height),
                   /*strict=*/false);
    std::vector<std::string> names;
    for (const auto& category : truth.categories) names.emplace_back(truth.text(category.name));

    std::vector<coco::Overlay> objects;
    for (const auto& object : found) {
      if (object.score < score_) continue;
      const auto category = split.category_ids.at(static_cast<std::size_t>(object.label));
      objects.push_back({.box = object.box,
                         .label = truth.category_index(category),
                         .score = object.score,
                         .mask = object.mask});
    }
    const auto picture = folder_ / fmt::format("{:012}.jpg", image.id);
    coco::write_picture(
        picture, coco::side_by_side(coco::draw_objects(pixels, objects, names), "found",
                                    coco::draw_objects(pixels, coco::overlays(truth, image), names),
                                    "annotated"));
    state.publish_picture({fmt::format("pictures/{}", image.id), picture});
  }

  std::int64_t count_;
  double score_;
  std::filesystem::path folder_;  // of the last pictures
};

MILLRACE_REGISTER(register_callback<DrawPictures>(
    "pictures", "draws what the detector finds in a few validation images"));

}  // namespace
}  // namespace millrace
