// With train.micro_batch, any number of ranks writes the same bytes: for every detector, optimizer
// and precision, for real photos, and if ranks are killed at random times. Takes minutes, so it is
// labelled slow.
#include <iostream>
#include <random>

#include "tests/end_to_end/same_bytes.h"
#include "tests/support/data.h"

namespace millrace::testing {
namespace {

class SameBytesAlways : public SameBytes {
 protected:
  /// Trains on ranks that are killed at random times; resumes on a random number of ranks until all
  /// steps are done.
  std::vector<std::string> train_killed(const Recipe& recipe, const std::vector<int>& numbers,
                                        unsigned seed, double longest_s) const {
    const auto output = in_folder("killed-" + std::to_string(seed));
    std::mt19937_64 random(seed);
    for (std::size_t start = 0;; ++start) {
      const int ranks =
          numbers[std::uniform_int_distribution<std::size_t>(0, numbers.size() - 1)(random)];
      const auto own = command(recipe, ranks, output);
      const auto child = ranks == 1 ? this->start(MILLRACE_TRAINER, own)
                                    : start_ranks(ranks, MILLRACE_TRAINER, own);
      const double instant = std::uniform_real_distribution(0.2 * longest_s, longest_s)(random);
      const auto deadline =
          std::chrono::steady_clock::now() + std::chrono::duration<double>(instant);
      int status = 0;
      bool done = false;
      while (!done && std::chrono::steady_clock::now() < deadline) {
        done = ::waitpid(child, &status, WNOHANG) == child;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
      if (done) {
        EXPECT_EQ(status, 0) << ranks << " ranks";
        return deterministic_results(output);
      }
      std::cout << " " << ranks << " ranks killed after " << instant << " s" << std::endl;
      ::kill(child, SIGKILL);
      finish(child);
      std::this_thread::sleep_for(std::chrono::seconds(1));  // ranks may outlive mpirun briefly
    }
  }

  static Recipe photos(const Words& more = {}) {
    const auto weights =
        data_folder() / "weights" / "R18_C1-C4_imagenet_torchvision_bnfolded_fp16.npz";
    return {"configs/real_photos.toml",
            Words{setting("data.root", fs::absolute(data_folder() / "coco_mini")),
                  setting("model.weights", fs::absolute(weights)), "data.short_side=192",
                  "data.max_side=288", "data.flip=0.5", "schedule.milestones=[]",
                  "model.test.score_thresh=0.01", "callbacks.evaluate.every='25 steps'"} +
                more,
            /*images=*/8, /*steps=*/50};
  }
};

TEST_F(SameBytesAlways, AreWrittenForEveryDetector) {
  make_data();
  for (const auto* name : {"maskrcnn", "fasterrcnn", "cascadercnn", "retinanet"})
    expect_same({std::string("configs/") + name + ".toml", on_samples()}, {2, 4});
  expect_same({"configs/yolox.toml", on_samples({"schedule.warmup='1 epoch'"})}, {4});
  expect_same({"configs/rtdetr.toml", on_samples({"data.short_side=96"})}, {4});
}

TEST_F(SameBytesAlways, AreWrittenForEveryOptimizerAndPrecision) {
  make_data();
  for (const Words& settings : {Words{"optimizer.type='adamw'", "optimizer.lr=1e-3",
                                      "callbacks.validation_loss.every='2 steps'"},
                                {"optimizer.trust='lars'", "optimizer.lr=1"},
                                {"optimizer.accumulate=2"},
                                {"train.precision='bf16'"},
                                {"train.precision='fp16'"},
                                {"train.threads=2"}})
    expect_same({"configs/maskrcnn.toml", on_samples(settings)}, {4});
  expect_same({"configs/maskrcnn.toml", on_samples({"train.micro_batch=2"})}, {2});
}

TEST_F(SameBytesAlways, AreWrittenForRealPhotos) {
  MILLRACE_NEEDS_DATA("coco_mini");
  MILLRACE_NEEDS_DATA("weights");
  expect_same(photos(), {2, 4, 8});
}

TEST_F(SameBytesAlways, AreWrittenIfKilledAndResumed) {
  MILLRACE_NEEDS_DATA("coco_mini");
  MILLRACE_NEEDS_DATA("weights");
  auto recipe = photos();
  recipe.steps = 12;
  const auto began = std::chrono::steady_clock::now();
  const auto whole = train(recipe, 1, "whole");
  const auto seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  for (unsigned seed = 1; seed <= 10; ++seed) {
    std::cout << "seed " << seed << "\n";
    EXPECT_TRUE(train_killed(recipe, {1, 2, 4, 8}, seed, seconds) == whole) << "seed " << seed;
  }
}

}  // namespace
}  // namespace millrace::testing
