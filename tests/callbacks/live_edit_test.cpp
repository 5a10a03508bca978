#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>

#include "millrace/trainer/edit_journal.h"
#include "tests/callbacks/training.h"
#include "tests/support/log.h"

namespace millrace::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// An edit of edit.toml: after `from` steps, the file contains `text`.
struct FileEdit {
  std::int64_t from;
  std::string text;
};

std::function<void(const TrainState&)> edit_file(const fs::path& run, std::vector<FileEdit> edits) {
  return [=](const TrainState& s) {
    const auto file = run / "edit.toml";
    std::string text;
    for (const auto& edit : edits)
      if (s.at.step >= edit.from) text = edit.text;
    if (text.empty())
      fs::remove(file);
    else
      write_file_atomically(file, text);
  };
}

Training edited_training(const fs::path& folder, std::vector<FileEdit> edits) {
  return {.folder = folder,
          .declared = {{"live_edit", "interval = '0 seconds'"},
                       {"log", "every = '1 steps'"},
                       {"checkpoint", "every = '4 steps'"}},
          .before_step = edit_file(folder, std::move(edits))};
}

/// Returns the values of a hyper-parameter by step, without steps that use the initial value.
std::map<int, double> changed(const fs::path& run, const std::string& name) {
  std::map<int, double> values;
  for (const auto& line : metrics(run))
    if (line.contains(name)) values[line.at("step")] = line.at(name);
  return values;
}

std::vector<nlohmann::json> journal(const fs::path& run) { return json_lines(run / "edits.jsonl"); }

TEST(LiveEdit, AppliesAndRecordsEdits) {
  const Scratch scratch;
  edited_training(scratch / "run", {{5, "lr_factor = 0.5\n"},
                                    {9, "lr_factor = 0.5\n[optimizer]\nmomentum = 0.8\n"}})();
  // An edit is applied once two reads are equal, here after steps 6 and 7.
  const auto rates = changed(scratch / "run", "lr_factor");
  EXPECT_EQ(rates.begin()->first, 8);
  EXPECT_EQ(rates.size(), 8U);
  EXPECT_EQ(changed(scratch / "run", "optimizer.momentum").begin()->first, 12);
  const auto lines = journal(scratch / "run");
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].at("after_step"), 7);
  EXPECT_EQ(lines[0].at("name"), "lr_factor");
  EXPECT_EQ(lines[0].at("from"), 1);
  EXPECT_EQ(lines[0].at("to"), 0.5);
  EXPECT_EQ(lines[1].at("name"), "optimizer.momentum");
}

TEST(LiveEdit, ResumesAfterKill) {
  const Scratch scratch;
  const std::vector<FileEdit> edits = {{1, "lr_factor = 0.5"}, {6, "lr_factor = 0.2"}};
  ASSERT_EQ(edited_training(scratch / "whole", edits).in_child(), 0);
  const auto whole = deterministic_results(scratch / "whole");
  for (std::int64_t victim = 0; victim < 15; ++victim) {
    const auto folder = scratch / ("killed-" + std::to_string(victim));
    edited_training(folder, edits).killed_after(victim);
    EXPECT_EQ(deterministic_results(folder), whole) << victim;
    EXPECT_EQ(journal(folder).size(), 2U) << victim;
  }
}

TEST(LiveEdit, AppliesNewEditsAfterReplayedOnes) {
  const Scratch scratch;
  edited_training(scratch / "run", {{6, "lr_factor = 0.5"}})();
  for (const auto* step : {"step-000008", "step-000012", "step-000015"})
    fs::remove_all(scratch / "run" / "checkpoints" / step);
  edited_training(scratch / "run", {{0, "lr_factor = 0.25"}})();  // resumes from step 4
  const auto rates = changed(scratch / "run", "lr_factor");
  EXPECT_EQ(rates.at(9), 0.5);
  EXPECT_EQ(rates.at(15), 0.25);
  std::vector<double> to;
  for (const auto& line : journal(scratch / "run")) to.push_back(line.at("to"));
  EXPECT_THAT(to, ElementsAre(0.5, 0.25));
}

TEST(LiveEdit, RejectsInvalidFile) {
  const struct {
    const char *text, *why;
  } cases[] = {{"lr_factor = 0.", "edit.toml"},
               {"lr_facto = 0.5", "did you mean 'lr_factor'"},
               {"lr_factor = 0.5\noptimizer.momentum = 2", "optimizer.momentum = 2"},
               {"lr_factor = 'half'", "lr_factor"},
               {"lr_facto = 'withdraw'", "did you mean 'lr_factor'"},
               {"lr_factor = [0.5]", "lr_factor"}};
  for (const auto& [text, why] : cases) {
    const Scratch scratch;
    Log log;
    edited_training(scratch / "run", {{2, text}})();
    const auto said = log.take();
    EXPECT_THAT(said, HasSubstr("no edit applied"));
    EXPECT_THAT(said, HasSubstr(why));
    EXPECT_TRUE(changed(scratch / "run", "lr_factor").empty());
    EXPECT_FALSE(fs::exists(scratch / "run" / "edits.jsonl"));
  }
}

TEST(LiveEdit, RejectsBrokenJournalLines) {
  const Scratch scratch;
  const auto run = edited_training(scratch / "run", {});
  fs::create_directories(scratch / "run");
  const std::string good = R"({"after_step":3,"name":"lr_factor","from":1,"to":0.5})"
                           "\n";
  write_file_atomically(scratch / "run" / "edits.jsonl", good + R"({"after_step":5,"na)");
  run();
  EXPECT_EQ(changed(scratch / "run", "lr_factor").begin()->first, 4);
  EXPECT_EQ(read_file(scratch / "run" / "edits.jsonl"), good);
  write_file_atomically(scratch / "run" / "edits.jsonl", good + "{\"after_step\":5,\"na\n");
  run();
  EXPECT_EQ(read_file(scratch / "run" / "edits.jsonl"), good);
  write_file_atomically(scratch / "run" / "edits.jsonl", "{\"after_\n" + good);
  EXPECT_THAT([&] { run(); },
              ::testing::ThrowsMessage<Error>(::testing::AllOf(
                  HasSubstr("edits.jsonl:1: "), ::testing::Not(HasSubstr("json.exception")))));
  write_file_atomically(scratch / "run" / "edits.jsonl", good + "{}\n");
  EXPECT_THAT([&] { run(); }, ::testing::ThrowsMessage<Error>(HasSubstr("edits.jsonl:2: ")));
}

TEST(LiveEdit, RevertsCurrentAndReplayedEdits) {
  const Scratch scratch;
  edited_training(scratch / "run", {{3, "lr_factor = 0.5"}, {9, "lr_factor = 'withdraw'"}})();
  auto rates = changed(scratch / "run", "lr_factor");
  EXPECT_EQ(rates.begin()->first, 6);
  EXPECT_EQ(rates.rbegin()->first, 11);
  EXPECT_EQ(journal(scratch / "run").back().at("to"), 1);

  edited_training(scratch / "again", {{3, "lr_factor = 0.5"}})();
  for (const auto* step : {"step-000008", "step-000012", "step-000015"})
    fs::remove_all(scratch / "again" / "checkpoints" / step);
  write_file_atomically(scratch / "again" / "edit.toml", "lr_factor = 'withdraw'");
  edited_training(scratch / "again", {{0, "lr_factor = 'withdraw'"}})();  // resumes from step 4
  EXPECT_TRUE(changed(scratch / "again", "lr_factor").empty());
  EXPECT_TRUE(journal(scratch / "again").empty());
}

TEST(LiveEdit, ReportsLastEditsBeforeStep) {
  const Scratch scratch;
  edited_training(scratch / "run", {{1, "lr_factor = 0.5"}, {5, "lr_factor = 0.25"}})();
  EXPECT_EQ(edits_text(scratch / "run", 3), "");
  EXPECT_THAT(edits_text(scratch / "run", 4), HasSubstr("lr_factor = 0.5 after step 3"));
  EXPECT_THAT(edits_text(scratch / "run", 15), HasSubstr("lr_factor = 0.25 after step 7"));
}

TEST(LiveEdit, ResumesAfterRevert) {
  const Scratch scratch;
  const std::vector<FileEdit> edits = {{1, "lr_factor = 0.5"}, {6, "lr_factor = 'withdraw'"}};
  ASSERT_EQ(edited_training(scratch / "whole", edits).in_child(), 0);
  const auto whole = deterministic_results(scratch / "whole");
  for (const std::int64_t victim : {3, 9, 11, 14}) {
    const auto folder = scratch / ("killed-" + std::to_string(victim));
    edited_training(folder, edits).killed_after(victim);
    EXPECT_EQ(deterministic_results(folder), whole) << victim;
  }
}

TEST(LiveEdit, WarnsIfFactorExceedsTen) {
  for (const auto& [text, warns] : {std::pair("lr_factor = 11", true), {"lr_factor = 10", false}}) {
    const Scratch scratch;
    Log log;
    edited_training(scratch / "run", {{2, text}})();
    EXPECT_EQ(log.take().find("warn") != std::string::npos, warns) << text;
  }
}

TEST(LiveEdit, OverridesSetParameterUntilNextPoint) {
  const Scratch scratch;
  auto run = edited_training(scratch / "run", {{5, "lr_factor = 0.5"}});
  run.declared.push_back({"set_parameter", "at = [7, 9]\nvalues = [2, 3]\nunit = 'steps'"});
  run();
  const auto rates = changed(scratch / "run", "lr_factor");
  EXPECT_EQ(rates.at(8), 0.5);
  EXPECT_EQ(rates.at(9), 0.5);
  EXPECT_EQ(rates.at(10), 3);
}

}  // namespace
}  // namespace millrace::testing
