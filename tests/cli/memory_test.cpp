// Steps that do not fit into memory: refused before they begin, computed in passes, or ended with
// one sentence.
#include <regex>

#include "tests/cli/trainer.h"
#include "tests/support/limited.h"

namespace millrace::testing {
namespace {

class Memory : public Trainer {
 protected:
  Outcome train(const fs::path& data, const Words& overrides = {}) const {
    return trainer(
        on(data, {"run", "--out", in_folder("runs")}, overrides + Words{"train.max_steps=1"}));
  }
};

TEST_F(Memory, AStepIsToldBeforeItBegins) {
  const auto done = successful(train(make_data()));
  EXPECT_THAT(done.err,
              AllOf(ContainsRegex("memory by estimate: a step takes [0-9]+ MiB for 4 images of "
                                  "[0-9]+ x [0-9]+ pixels, the largest of 1 planned batches; "
                                  "evaluation [0-9]+ MiB for [1-8] image"),
                    HasSubstr("; the data flow "), HasSubstr(" free")));
}

TEST_F(Memory, ABatchThatCannotFitIsRefused) {
  const auto data = make_data();
  expect_error(train(data, {"data.batch_size=65536", "data.short_side=800", "data.max_side=1333"}),
               2, "it cannot fit: set train.passes = 0, or lower data.batch_size");
}

TEST_F(Memory, AForecastComesNearWhatIsTaken) {
  successful(train(make_data(), kTrainOnly + Words{"data.val=''", "data.short_side=320",
                                                   "data.max_side=480", "model.backbone.width=64",
                                                   "train.max_steps=3", "train.epochs=10"}));
  const auto start = read_json(in_folder("runs") / "maskrcnn-1" / "record.json")["starts"][0];
  const double forecast = start["memory_forecast_mib"]["most"],
               taken = start["used"]["peak_memory_mib"][0];
  EXPECT_GT(forecast, 0.75 * taken);
  EXPECT_LT(forecast, 1.25 * taken);
}

TEST_F(Memory, ABatchOfMoreThanAllImagesIsToldOf) {
  const auto done = successful(train(make_data(), {"data.batch_size=9"}));
  EXPECT_THAT(done.err,
              HasSubstr("batches of 9 images (data.batch_size) from 8 images: images repeat"));
}

TEST_F(Memory, AStepThatRunsOutOfMemoryEndsInOneSentence) {
  const auto data = make_data();
  const Limited address_space(RLIMIT_AS, rlim_t{5} << 29);
  // Stages that give no bound, so that nothing is forecast.
  const auto ended = train(
      data, {"data.stages=[{type='read'}, {type='decode'}, {type='group_by_aspect_ratio'}, "
             "{type='pad'}]",
             "unset=['data.short_side', 'data.max_side']", "data.batch_size=256", "data.threads=1",
             "train.threads=1", "data.memory=64", "model.backbone.width=64"});
  EXPECT_EQ(ended.exit_code, 1) << ended.err;
  EXPECT_THAT(ended.err,
              AllOf(HasSubstr("step 1: not enough memory for a batch of 256 images padded to "),
                    HasSubstr("lower data.batch_size"), Not(HasSubstr("frame #"))));
}

TEST_F(Memory, ABatchThatDoesNotFitIsComputedInPasses) {
  const auto data = make_data();
  const Words large = kTrainOnly + Words{"data.val=''",         "data.short_side=320",
                                         "data.max_side=480",   "model.backbone.norm='gn'",
                                         "model.fpn.norm='gn'", "data.threads=1",
                                         "train.threads=1"};
  const auto passes = [&] {
    const auto config = read_text(in_folder("runs") / "maskrcnn-1" / "config.toml");
    const auto at = config.find("\npasses = ");
    return at == std::string::npos ? 0 : std::stoi(config.substr(at + 10));
  };
  constexpr rlim_t kMebibyte = 1 << 20, kWide = 1 << 10;
  rlim_t narrow = 0;  // leaves 0.7 of what the whole batch takes
  {
    const Limited memory(RLIMIT_DATA, kWide * kMebibyte);
    const auto told = successful(train(data, large)).err;
    std::smatch found;
    ASSERT_TRUE(std::regex_search(
        told, found, std::regex("at most ([0-9]+) MiB together, with ([0-9]+) MiB free")));
    narrow = kWide - std::stoul(found[2]) + std::stoul(found[1]) * 7 / 10;
    fs::remove_all(in_folder("runs"));
  }
  {
    const Limited memory(RLIMIT_DATA, narrow * kMebibyte);
    expect_error(train(data, large), 2, "it cannot fit: set train.passes = 0");
    const auto done = successful(train(data, large + Words{"train.passes=0"}));
    EXPECT_THAT(done.err, ContainsRegex(" in [2-4] passes, the largest of"));
  }
  const auto taken = passes();
  EXPECT_GT(taken, 1);
  successful(trainer(on(data, {"run", "--resume", "--out", in_folder("runs")},
                        large + Words{"train.passes=0", "train.max_steps=2"})));
  EXPECT_EQ(passes(), taken) << "as before, although there is enough memory now";
}

}  // namespace
}  // namespace millrace::testing
