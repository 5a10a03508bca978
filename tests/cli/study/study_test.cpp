// Studies: whatever kills them, they come to the same table; what they refuse and what fails.
#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "tests/cli/trainer.h"
#include "tests/support/page_json.h"
#include "tests/support/wait.h"

namespace millrace::testing {
namespace {

class StudyRun : public Trainer {
 protected:
  fs::path data_ = make_data();

  fs::path config() const {
    return write_heir(
        in_folder("exp.toml"),
        "[data]\nroot = '" + data_.string() +
            "'\nshort_side = 64\nmax_side = 96\n[model]\nbackbone.width = 16\n"
            "[train]\nmax_steps = 5\nthreads = 1\n[schedule]\nwarmup = '2 steps'\n"
            "[callbacks.checkpoint]\nevery = '1 steps'\n[callbacks.pictures]\nenabled = false\n");
  }

  Words command(const std::string& out, const Words& more = {}) const {
    return Words{"study", config(), "--out", in_folder(out), "--json"} + more;
  }

  /// A result without what differs from one folder and one day to the next.
  static Json figures(const Outcome& end) {
    auto json = end.json();
    for (auto& variant : json.at("variants")) variant.erase("seconds"), variant.erase("folders");
    return json;
  }

  std::size_t done(const std::string& out) const {
    const auto file = in_folder(out) / "study.json";
    if (!fs::exists(file)) return 0;
    std::size_t count = 0;
    const auto study = read_json(file);
    for (const auto& run : study.at("runs")) count += run.at("state") == "done";
    return count;
  }

  /// Runs until `reached`, then sends one signal.
  Outcome stopped(const Words& arguments, int signal, const std::function<bool()>& reached) const {
    const auto child = start(MILLRACE_TRAINER, arguments);
    EXPECT_TRUE(comes_to(reached));
    ::kill(child, signal);
    return finish(child);
  }

  bool has_checkpoint(const std::string& run) const {
    return fs::exists(in_folder(run) / "exp-1" / "checkpoints" / "latest");
  }
};

const Words kTwoByTwo = {"--seeds", "2", "--vary", "optimizer.lr=0.01,0.05"};

TEST_F(StudyRun, KilledAndStartedAgainItComesToTheSameTable) {
  const auto whole = successful(trainer(command("whole", kTwoByTwo + Words{"--jobs", "2"})));
  const auto expected = figures(whole);
  EXPECT_EQ(expected.at("done"), 4);
  EXPECT_EQ(expected.at("maths_threads"), 1);
  ASSERT_EQ(expected.at("variants").size(), 2);
  EXPECT_EQ(expected.at("variants")[1].at("name"), "optimizer.lr=0.05");
  EXPECT_EQ(expected.at("variants")[1].at("seeds"), Json({1, 2}));
  EXPECT_EQ(expected.at("differences").size(), 2) << "boxes and masks";
  EXPECT_THAT(whole.err, HasSubstr("4 of 4 done"));
  successful(trainer({"report", in_folder("whole")}));
  const auto drawn = page_json(read_text(in_folder("whole") / "report.html"))["study"];
  EXPECT_EQ(drawn["differences"], expected.at("differences"));
  EXPECT_EQ(drawn["variants"][1]["folders"][1], "optimizer.lr=0.05-seed-2/exp-1");

  const auto killed = stopped(command("killed", kTwoByTwo), SIGKILL,
                              [&] { return has_checkpoint("killed/optimizer.lr=0.05-seed-1"); });
  EXPECT_EQ(killed.exit_code, -1);
  const auto training = in_folder("killed/optimizer.lr=0.05-seed-1") / "exp-1";
  EXPECT_TRUE(comes_to([&] {
    try {
      const FileLock nobody_else(training / "lock");
      return true;
    } catch (const Error&) {
      return false;
    }
  })) << "the training outlives its study";
  EXPECT_GE(done("killed"), 1);
  EXPECT_LT(done("killed"), 4);

  const auto told = stopped(command("killed", kTwoByTwo), SIGTERM,
                            [&] { return has_checkpoint("killed/optimizer.lr=0.01-seed-2"); });
  EXPECT_EQ(told.exit_code, 3) << told.err;
  EXPECT_THAT(told.err, HasSubstr("the same command goes on"));
  EXPECT_GE(done("killed"), 2);
  EXPECT_LT(done("killed"), 4);
  EXPECT_EQ(told.out, "");

  const auto resumed = successful(trainer(command("killed", kTwoByTwo)));
  EXPECT_EQ(figures(resumed), expected);
  EXPECT_THAT(read_text(in_folder("killed/optimizer.lr=0.05-seed-1/output.txt")) +
                  read_text(in_folder("killed/optimizer.lr=0.01-seed-2/output.txt")),
              HasSubstr("resuming after step "));
  for (const std::string run : {"optimizer.lr=0.01-seed-1", "optimizer.lr=0.05-seed-2"})
    EXPECT_FALSE(fs::exists(in_folder("killed") / run / "exp-2")) << run;

  // What is done is not done again, and a folder alone is shown.
  const auto written = fs::last_write_time(training / "record.json");
  EXPECT_EQ(figures(successful(trainer(command("killed", kTwoByTwo)))), expected);
  EXPECT_EQ(figures(successful(trainer({"study", in_folder("killed"), "--json"}))), expected);
  EXPECT_EQ(fs::last_write_time(training / "record.json"), written);
  const auto shown = successful(trainer({"study", in_folder("killed")})).out;
  EXPECT_THAT(shown, AllOf(StartsWith("exp: 4 of 4 runs done; 4 images, 1 maths thread\n"),
                           HasSubstr("optimizer.lr=0.05 against optimizer.lr=0.01\n  box AP: "),
                           ContainsRegex("  mask AP50 +[0-9.]+ +[0-9.]+ +[0-9.]+ \\.\\. ")));

  // Another plan is refused, whatever of it differs.
  const auto refused = [&](const Words& more, const std::string& why) {
    expect_error(trainer(command("killed", more)), 2, why);
  };
  refused({"--seeds", "2", "--vary", "optimizer.lr=0.01,0.07"},
          "has another study: --vary optimizer.lr is 0.01,0.05 there and 0.01,0.07 here");
  refused(kTwoByTwo + Words{"--set", "train.max_steps=6"}, "train.max_steps is 5 there and 6 here");
  refused({"--seeds", "1", "--vary", "optimizer.lr=0.01,0.05"}, "--seeds is 2 there and 1 here");
}

TEST_F(StudyRun, OfOneSeedItAgreesWithCocoEval) {
  const auto json =
      successful(trainer(command("one", {"--seeds", "1", "--vary", "optimizer.lr=0.05,0.001"})))
          .json();
  const auto detections = [&](std::size_t variant) {
    const fs::path run = json.at("variants")[variant].at("folders")[0].get<std::string>();
    return (run / "detections" / "step-000005.json").string();
  };
  for (const auto& difference : json.at("differences")) {
    const std::string iou = difference.at("figure") == "bbox/AP" ? "bbox" : "segm";
    const auto versus =
        successful(
            trainer({"coco-eval", "--gt", data_ / "annotations/instances_val2017.json", "--dt",
                     detections(1), "--versus", detections(0), "--iou", iou, "--json"}))
            .json()
            .at("versus");
    const auto& ap = versus.at("difference").at("AP");
    EXPECT_EQ(difference.at("difference"), ap.at("value"));
    EXPECT_EQ(difference.at("low"), ap.at("low"));
    EXPECT_EQ(difference.at("high"), ap.at("high"));
    EXPECT_EQ(difference.at("p"), versus.at("p"));
    EXPECT_TRUE(difference.at("real").is_null());
  }
  EXPECT_EQ(json.at("differences").size(), 2);
}

TEST_F(StudyRun, ARunThatFailsIsNamedAndTheOthersGoOn) {
  const auto words = command("failing", {"--seeds", "1", "--vary", "model.weights='','none.npz'"});
  const auto failed = trainer(words);
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_THAT(failed.err,
              AllOf(HasSubstr("model.weights='none.npz', seed 1: exit code 2: "),
                    HasSubstr("trainer: error: 1 of 2 runs failed: model.weights='none.npz', "
                              "seed 1 ("),
                    HasSubstr("output.txt")));
  const auto json = failed.json();
  EXPECT_EQ(json.at("failed"), 1);
  EXPECT_EQ(json.at("done"), 1);
  EXPECT_THAT(json.at("left_out")[0].get<std::string>(), HasSubstr("none.npz"));
  EXPECT_EQ(done("failing"), 1);
}

TEST_F(StudyRun, WrongUseIsRefusedBeforeAnythingRuns) {
  for (const auto& [more, why] : std::vector<std::pair<Words, std::string>>{
           {{}, "--seeds is required"},
           {{"--seeds", "2", "--vary", "optimizer.lr=0.1"}, "two values or more"},
           {{"--seeds", "2", "--vary", "optimizer.rl=0.1,0.2"}, "optimizer.rl"},
           {{"--seeds", "2", "--vary", "optimizer.lr=0.02,0.020"}, "optimizer.lr=0.020"},
           {{"--seeds", "2", "--vary", "train.seed=1,2"}, "the study sets it itself"},
           {{"--seeds", "2", "--set", "train.seed=1"}, "the study sets it itself"},
           {{"--seeds", "0"}, "--seeds"}}) {
    expect_error(trainer(command("none", more)), 2, why);
    EXPECT_FALSE(fs::exists(in_folder("none")));
  }
  expect_error(trainer({"study", data_}), 2, "has no study");
  expect_error(trainer({"study", data_, "--seeds", "2"}), 2, "is a folder");
}

}  // namespace
}  // namespace millrace::testing
