// A training run whose steps take microseconds: a detector with two parameters, on generated
// numbers.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "millrace/base/random.h"
#include "millrace/coco/data/records.h"
#include "millrace/trainer/checkpoint/checkpoint.h"
#include "millrace/trainer/every.h"
#include "millrace/trainer/run/run.h"
#include "millrace/trainer/trainer.h"

namespace millrace::testing {

/// Fits weight . x + bias to noisy numbers. The noise depends only on seed and step, like a
/// sampler's random draws.
class LineDetector : public Detector {
 public:
  LineDetector()
      : weight_(parameters_.add("line.weight", at::zeros({3}), ParameterKind::weight)),
        bias_(parameters_.add("line.bias", at::zeros({1}), ParameterKind::bias)) {}

  LossSums compute_losses(const Batch& batch, const StepInfo& step) override {
    Rng rng{step.seed, static_cast<std::uint64_t>(step.step)};
    const auto id = static_cast<float>(batch.images[0].image_id);
    const auto x = at::tensor({id * 0.1F, id * id * 0.01F, 1.0F});
    const auto error = (weight_ * x).sum() + bias_ - 2 * id - rng.normal();
    auto fit = error.square().sum() * 0.01;
    if (step.step >= bad_from && step.step < bad_until) fit = fit / 0.0;
    if (step.metrics) step.metrics->add("line/error", error.abs().sum(), at::tensor({2.0F}));
    const LossDivisor images{"images", static_cast<double>(batch.size())};
    return {{"fit", fit * images.number, images},
            {"size", weight_.square().sum() * 1e-3 * images.number, images}};
  }

  /// Detects one object per image, with score 0.9 and a box that depends on the image id.
  std::vector<std::vector<DetectedObject>> find_objects(const Batch& batch,
                                                        DetectionNotes*) override {
    std::vector<std::vector<DetectedObject>> found;
    for (const auto& image : batch.images) {
      const auto shift = static_cast<float>(image.image_id % 3);
      found.push_back({{.box = {10 + shift, 10, 40 + shift, 40}, .label = 0, .score = 0.9F}});
    }
    return found;
  }

  const Parameters& parameters() const override { return parameters_; }

  std::int64_t bad_from = 0, bad_until = 0;  // Range of steps whose loss is infinite.

 private:
  Parameters parameters_;
  at::Tensor weight_, bias_;
};

inline void add_image(Batch& batch, std::int64_t id) {
  batch.images.push_back({.image_id = id, .original_width = 64, .original_height = 64});
  batch.objects.emplace_back();
}

/// Yields a rank's share of the images 1 to `size`, in order, in batches of two.
class FakePass final : public DataFlow<Batch> {
 public:
  FakePass(std::int64_t size, Share share) : size_(size), share_(share), next_(share.rank) {}

  std::optional<Delivery<Batch>> next() override {
    if (next_ >= size_) return std::nullopt;
    Delivery<Batch> delivery;
    for (int i = 0; i < 2 && next_ < size_; ++i, next_ += share_.ranks)
      add_image(delivery.value, next_ + 1);
    return delivery;
  }
  std::int64_t epoch_size() const override { return size_; }
  FlowReport report() const override { return {}; }

 private:
  std::int64_t size_;
  Share share_;
  std::int64_t next_;
};

/// Yields batches of two images whose ids depend only on the epoch and the position in it.
class FakeFlow : public DataFlow<Batch> {
 public:
  FakeFlow(std::int64_t size, std::int64_t start, std::int64_t end)
      : size_(size), position_(start), end_(end) {}

  std::optional<Delivery<Batch>> next() override {
    if (position_ >= end_) return std::nullopt;
    Delivery<Batch> delivery;
    delivery.epoch = position_ / size_;
    for (int i = 0; i < 2; ++i, ++position_) {
      const Permutation order(static_cast<std::uint64_t>(size_), 1, delivery.epoch);
      add_image(delivery.value, static_cast<std::int64_t>(order(position_ % size_)) + 1);
    }
    delivery.cursor.next = position_;
    delivery.progress = static_cast<double>(position_) / static_cast<double>(size_);
    return delivery;
  }
  std::int64_t epoch_size() const override { return size_; }
  FlowReport report() const override { return {}; }

 private:
  std::int64_t size_, position_, end_;
};

constexpr std::int64_t kEpochImages = 10;  // five steps per epoch

/// Returns ten images of 64 x 64 pixels with one object each.
inline coco::Records fake_truth() {
  coco::Records truth;
  truth.add_category(7, "star");
  for (std::int64_t id = 1; id <= kEpochImages; ++id) {
    truth.add_image(id, "", 64, 64);
    coco::Annotation object{.id = id, .image_id = id, .category_id = 7, .area = 900};
    for (int i = 0; i < 4; ++i) object.bbox[i] = i < 2 ? 10 : 30;
    truth.add(object);
  }
  return truth;
}

inline EvalData fake_validation() {
  return {.split = make_split(assemble(fake_truth(), "fake"), "nowhere", {}),
          .start = [](Share share) { return std::make_unique<FakePass>(kEpochImages, share); }};
}

inline TrainPlan fake_plan(Detector& model, const std::filesystem::path& folder,
                           const Cluster& cluster = Cluster::alone()) {
  TrainPlan plan{.model = model, .cluster = cluster};
  plan.train.epochs = 3;
  plan.optimizer = {.lr = 0.05, .lr_batch = 2, .clip_norm = 5};
  plan.schedule = {.milestones = {2}, .warmup = "4 steps", .warmup_factor = 0.1};
  plan.images_per_step = 2;
  plan.start_data = [](const Cursor& start) {
    return std::make_unique<FakeFlow>(kEpochImages, start.next, 1 << 30);
  };
  plan.folder = folder;
  plan.config = "[train]\n";
  return plan;
}

/// A callback whose hooks are std::functions.
struct LambdaCallback final : Callback, PublishesMetrics, ReadsMetrics {
  bool on_all_ranks = false;
  std::vector<std::string> names = {"*"};  // Names of the metrics that it publishes.
  std::function<void(const TrainState&)> on_before_train, on_before_step, on_after_step,
      on_after_epoch, on_after_train, on_trigger;
  std::function<void(const TrainState&, const Moment&, const Scalars&)> on_published;

  static void call(const std::function<void(const TrainState&)>& f, const TrainState& s) {
    if (f) f(s);
  }
  void before_train(const TrainState& s) override { call(on_before_train, s); }
  void before_step(const TrainState& s) override { call(on_before_step, s); }
  void after_step(const TrainState& s) override { call(on_after_step, s); }
  void after_epoch(const TrainState& s) override { call(on_after_epoch, s); }
  void after_train(const TrainState& s) override { call(on_after_train, s); }
  void trigger(const TrainState& s) override { call(on_trigger, s); }
  bool chief_only() const override { return !on_all_ranks; }
  std::vector<std::string> publishes() const override { return names; }
  void on_scalars(const TrainState& s, const Moment& of, const Scalars& scalars) override {
    if (on_published) on_published(s, of, scalars);
  }
};

/// Trains with a LambdaCallback; resumes from the newest checkpoint in the plan's folder, if any.
inline TrainEnd train(const TrainPlan& plan, const std::function<void(LambdaCallback&)>& set_up) {
  auto callback = std::make_unique<LambdaCallback>();
  set_up(*callback);
  CallbackList callbacks;
  callbacks.add("test", std::move(callback));
  Trainer trainer(plan, std::move(callbacks));
  if (const auto newest = newest_checkpoint(plan.folder / "checkpoints")) trainer.resume(*newest);
  return trainer.run();
}

/// Trains and saves a checkpoint after each step.
inline TrainEnd train_saving(const TrainPlan& plan) {
  return train(plan, [](LambdaCallback& c) {
    c.on_after_step = [](const TrainState& s) { s.save_checkpoint(); };
  });
}

}  // namespace millrace::testing
