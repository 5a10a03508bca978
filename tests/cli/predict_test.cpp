// trainer predict over many files: killed, continued, with files that are broken.
#include <csignal>

#include "tests/cli/trainer.h"
#include "tests/support/wait.h"

namespace millrace::testing {
namespace {

class Predict : public TrainerOnData {
 protected:
  /// A model that was trained for a step.
  fs::path model() {
    successful(trainer(on(data_, {"run", "--output", in_folder("runs")},
                          kTrainOnly + Words{"train.max_steps=1"})));
    return in_folder("runs") / "maskrcnn-1";
  }

  /// A folder of `count` photos, of which every seventh is broken.
  fs::path photos(int count) {
    const auto folder = in_folder("photos");
    fs::create_directory(folder);
    std::vector<fs::path> good;
    for (const auto& entry : fs::directory_iterator(data_ / "val2017"))
      good.push_back(entry.path());
    std::ranges::sort(good);
    for (int i = 0; i < count; ++i) {
      const auto file = folder / ("0" + std::to_string(100 + i) + ".jpg");
      if (i % 7 == 3)
        write_text(file, "no picture");
      else
        fs::create_hard_link(good[static_cast<std::size_t>(i) % good.size()], file);
    }
    return folder;
  }

  static std::int64_t lines_in(const fs::path& file) {
    return std::ranges::count(read_text(file), '\n');
  }

  /// Files of a folder by name, with their bytes.
  static std::map<std::string, std::string> all_in(const fs::path& folder) {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::directory_iterator(folder))
      files[entry.path().filename()] = read_text(entry.path());
    return files;
  }
};

TEST_F(Predict, KilledAnywhereGoesOnToTheSameBytes) {
  const auto weights = model(), folder = photos(24);
  const auto into = [&](const fs::path& out, const Words& more = {}) {
    return Words{"predict", weights, folder, "--out", out} + more;
  };
  const auto whole = trainer(into(in_folder("whole")));
  EXPECT_EQ(whole.exit_code, 1);
  EXPECT_THAT(whole.err, HasSubstr("3 of 24 images failed: "));
  const auto expected = all_in(in_folder("whole"));
  EXPECT_EQ(expected.size(), 21U + 2U);

  const auto out = in_folder("killed");
  for (const std::int64_t lines : {2, 9, 17}) {  // the first tells of no file
    const auto child = start(MILLRACE_TRAINER, into(out));
    comes_to([&] { return lines_in(out / "predict.part") >= lines; });
    ::kill(child, SIGKILL);
    EXPECT_EQ(finish(child).exit_code, -1);
    EXPECT_FALSE(fs::exists(out / "detections.json"));
    // As if in the middle of writing, too.
    write_text(out / "predict.part", read_text(out / "predict.part") + "{\"file\":\"/ph");
    write_text(out / "detections.json.part", read_text(out / "detections.json.part") + ",\n{\"im");
  }
  const auto end = trainer(into(out));
  EXPECT_THAT(end.err, HasSubstr("goes on after "));
  EXPECT_THAT(end.err, HasSubstr("3 of 24 images failed: ")) << "those of before, too";
  EXPECT_EQ(all_in(out), expected);
  // Nothing is left to go on with.
  EXPECT_THAT(trainer(into(out)).err, Not(HasSubstr("goes on after ")));
  EXPECT_EQ(all_in(out), expected);
}

TEST_F(Predict, OfOtherPhotosOrOptionsBeginsAnew) {
  const auto weights = model(), folder = photos(12), out = in_folder("out");
  const Words command = {"predict", weights, folder, "--out", out};
  const auto child = start(MILLRACE_TRAINER, command);
  comes_to([&] { return lines_in(out / "predict.part") >= 3; });
  ::kill(child, SIGKILL);
  finish(child);
  fs::remove(folder / "0103.jpg");
  fs::remove(folder / "0110.jpg");
  const auto again = successful(trainer(command));
  EXPECT_THAT(again.err, HasSubstr("begins anew"));
  EXPECT_EQ(read_json(out / "images.json").at("images").size(), 10U);
  EXPECT_EQ(std::ranges::count(again.out, '\n'), 10);
}

TEST_F(Predict, GivesTheSameInBatches) {
  const auto weights = model(), folder = photos(12);
  const Words batches = {"--set", "data.test_batch_size=4"};
  trainer(Words{"predict", weights, folder, "--out", in_folder("a")} + batches);
  const auto expected = all_in(in_folder("a"));
  ASSERT_EQ(read_json(in_folder("a") / "images.json").at("images").size(), 10U);
  const auto out = in_folder("b");
  const Words command = Words{"predict", weights, folder, "--out", out} + batches;
  const auto child = start(MILLRACE_TRAINER, command);
  comes_to([&] { return lines_in(out / "predict.part") >= 4; });
  ::kill(child, SIGKILL);
  finish(child);
  trainer(command);
  EXPECT_EQ(all_in(out), expected);
}

}  // namespace
}  // namespace millrace::testing
