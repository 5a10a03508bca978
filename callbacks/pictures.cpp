// [callbacks.pictures]: draws the detections in a few validation images beside the annotations;
// with `stages` also the proposals, and the detections before NMS.
#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/log.h"
#include "millrace/coco/drawing/draw.h"
#include "millrace/coco/evaluation/box_iou.h"
#include "millrace/dataflow/image/image_file.h"
#include "millrace/models/detector/make_detector.h"
#include "millrace/trainer/callback.h"
#include "millrace/trainer/evaluation/evaluation.h"
#include "millrace/trainer/train_state.h"

namespace millrace {
namespace {

struct PicturesOptions {
  std::string every = "1 epoch";
  std::int64_t count = 4;
  double score = 0.5;
  bool stages = false;

  void describe(Options& o) {
    o.add("every", every, "interval; also after the last step").affects(Affects::run);
    o.add("count", count, "number of validation images, from the first",
          {.min = 1, .unit = "images"})
        .affects(Affects::run);
    o.add("score", score, "minimum score of drawn objects", {.min = 0, .max = 1})
        .affects(Affects::run);
    o.add("stages", stages,
          "also draw the three proposals nearest to each annotated object, and the detections "
          "before NMS")
        .affects(Affects::run);
  }
};

float overlap(const Box& a, const Box& b) {
  const double first[] = {a.x1, a.y1, a.width(), a.height()},
               second[] = {b.x1, b.y1, b.width(), b.height()};
  return static_cast<float>(coco::box_iou(first, second, /*crowd=*/false));
}

class DrawPictures final : public Callback {
 public:
  using Options = PicturesOptions;
  static constexpr bool kByDefault = true;

  DrawPictures(const Options& options, std::string name)
      : name_(std::move(name)),
        count_(options.count),
        score_(options.score),
        stages_(options.stages) {}

  void before_train(const TrainState& state) override {
    if (stages_ && !state.model.gives_notes())
      throw ConfigError(
          fmt::format("callbacks.pictures.stages: {} has no second stage, or merges several views "
                      "of an image (model.test.aug_flip, model.test.aug_scales); remove it",
                      state.model.title()));
  }

  /// A failure to draw does not end the training.
  void trigger(const TrainState& state) override {
    if (!state.validation) return;
    try {
      draw_all(state);
    } catch (const std::exception& problem) {
      log_warning("callback '{}': skipped the remaining pictures of step {}: {}", name_,
                  state.at.step, problem.what());
    }
  }

  void after_train(const TrainState& state) override {
    if (!folder_.empty()) log_info("pictures are in {}", (state.folder / "pictures").string());
  }

 private:
  void draw_all(const TrainState& state) {
    const auto folder = state.folder / "pictures" / fmt::format("step-{:06}", state.at.step);
    make_writable_folder(folder);
    folder_ = folder;
    std::int64_t drawn = 0;
    const auto watch = state.pass_watch();
    go_through(state.validation->start({}), watch, [&](const Batch& batch) {
      const Objects none;
      DetectionNotes notes;
      const auto found = state.model.detect(batch, stages_ ? &notes : nullptr);
      for (std::size_t i = 0; i < found.size() && drawn < count_ && !watch.cancelled();
           ++i, ++drawn)
        draw_or_warn(
            state, batch.images[i].image_id,
            {found[i], stages_ ? notes.proposals[i] : none, stages_ ? notes.raw[i] : none});
      return drawn < count_;
    });
  }

  using Objects = std::vector<DetectedObject>;

  /// Detections, proposals and detections before NMS of one image.
  struct Seen {
    const Objects &found, &proposals, &raw;
  };

  void draw_or_warn(const TrainState& state, std::int64_t image_id, const Seen& seen) const {
    const auto& split = state.validation->split;
    const auto& image = *split.annotations->find_image(image_id);
    const auto file = split.images / split.annotations->text(image.file_name);
    try {
      draw(state, image, file, seen);
    } catch (const std::exception& problem) {
      log_warning("callback '{}': cannot draw {}: {}", name_, file.string(), problem.what());
    }
  }

  void draw(const TrainState& state, const coco::Image& image, const std::filesystem::path& file,
            const Seen& seen) const {
    const auto& split = state.validation->split;
    const auto& truth = *split.annotations;
    const auto pixels =
        decode_rgb(read_file(file), file.string(), cv::Size(image.width, image.height),
                   /*strict=*/false);
    std::vector<std::string> names;
    for (const auto& category : truth.categories) names.emplace_back(truth.text(category.name));

    const auto drawn = [&](const std::vector<coco::Overlay>& objects) {
      return coco::draw_objects(pixels, objects, names);
    };
    const auto annotated = coco::overlays(truth, image);
    const auto found = drawn(shown(seen.found, split));
    auto whole = stages_ ? coco::above(coco::side_by_side(drawn(annotated), "annotated",
                                                          drawn(nearest(seen.proposals, annotated)),
                                                          "proposals, with their IoU"),
                                       coco::side_by_side(drawn(shown(seen.raw, split)),
                                                          "before NMS", found, "found"))
                         : coco::side_by_side(found, "found", drawn(annotated), "annotated");
    const auto picture = folder_ / fmt::format("{:012}.jpg", image.id);
    coco::write_picture(picture, whole);
    state.publish_picture({fmt::format("pictures/{}", image.id), picture});
  }

  /// Returns the objects with at least the minimum score.
  std::vector<coco::Overlay> shown(const Objects& objects, const DataSplit& split) const {
    std::vector<coco::Overlay> overlays;
    for (const auto& object : objects) {
      if (object.score < score_) continue;
      const auto category = split.category_ids.at(static_cast<std::size_t>(object.label));
      overlays.push_back({.box = object.box,
                          .label = split.annotations->category_index(category),
                          .score = object.score,
                          .mask = object.mask});
    }
    return overlays;
  }

  /// Returns the proposals that overlap each object most, drawn as that object with the IoU as
  /// score.
  static std::vector<coco::Overlay> nearest(const Objects& proposals,
                                            const std::vector<coco::Overlay>& annotated) {
    constexpr std::size_t kEach = 3;
    std::vector<coco::Overlay> overlays;
    for (const auto& object : annotated) {
      std::vector<coco::Overlay> own;
      for (const auto& proposal : proposals)
        own.push_back({.box = proposal.box,
                       .label = object.label,
                       .score = overlap(proposal.box, object.box)});
      const auto most = std::min(kEach, own.size());
      std::ranges::stable_sort(own, std::ranges::greater(), &coco::Overlay::score);
      own.resize(most);
      std::erase_if(own, [](const auto& one) { return one.score <= 0; });
      overlays.insert(overlays.end(), own.begin(), own.end());
    }
    return overlays;
  }

  std::string name_;
  std::int64_t count_;
  double score_;
  bool stages_;
  std::filesystem::path folder_;  // folder of the last pictures
};

MILLRACE_REGISTER(register_callback<DrawPictures>("pictures",
                                                  "draws detections in a few validation images"));

}  // namespace
}  // namespace millrace
