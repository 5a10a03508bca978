// record.json and trainer diff on real training runs.
#include "tests/cli/served.h"

namespace millrace::testing {
namespace {

class Record : public Trainer {
 protected:
  fs::path data_ = make_data();
  fs::path runs_ = in_folder("runs");

  /// Returns the command of a short training run with a checkpoint after every step and an
  /// evaluation after every second step.
  Words command(const Words& settings = {}, const Words& more = {}) const {
    return on(data_, Words{"run", "--out", runs_} + more,
              Words{"train.epochs=1000", "train.max_steps=4", "train.threads=1",
                    "callbacks.checkpoint.every='1 steps'", "callbacks.checkpoint.keep=0",
                    "callbacks.log.every='1 steps'", "callbacks.evaluate.every='2 steps'",
                    "callbacks.pictures.enabled=false", "callbacks.report.enabled=false"} +
                  settings);
  }
  Outcome train(const Words& settings = {}, const Words& more = {}) const {
    return successful(trainer(command(settings, more)));
  }

  fs::path run(int number) const { return runs_ / ("maskrcnn-" + std::to_string(number)); }
  Json record(int number) const { return read_json(run(number) / "record.json"); }

  static double parts_of(const Json& used, const char* time) {
    double sum = 0;
    for (const auto& part : used.at("parts")) sum += part.at(time).get<double>();
    return sum;
  }

  Json diff(const fs::path& a, const fs::path& b) const {
    return successful(trainer({"diff", a, b, "--json"})).json();
  }
  static Words names(const Json& differences) {
    Words all;
    for (const auto& one : differences) all.push_back(one.at("what"));
    return all;
  }
};

/// Numbers in a record are rounded to thousandths.
constexpr double kRounding = 0.01;

TEST_F(Record, RecordsResourcesAndTargets) {
  const auto end = train({"train.price_per_hour=3600", "callbacks.evaluate.targets={'bbox/AP'=0}"});
  EXPECT_THAT(end.err, ContainsRegex("price .*[0-9.]+"));
  const auto all = record(1);
  const auto& used = all.at("used");
  const double wall = used.at("wall_s");
  EXPECT_LE(parts_of(used, "wall_s"), wall + kRounding);
  EXPECT_LE(parts_of(used, "cpu_s"), used.at("cpu_s").get<double>() + kRounding);
  for (const auto* part : {"start", "forward", "backward", "optimizer", "evaluation"})
    EXPECT_GT(used.at("parts").at(part).at("wall_s"), 0) << part;
  EXPECT_EQ(used.at("parts").at("sync").at("wall_s"), 0);  // there is only one rank
  EXPECT_NEAR(used.at("price"), wall, kRounding);
  EXPECT_EQ(used.at("peak_memory_mib").size(), 1);
  EXPECT_GT(used.at("peak_memory_mib").at(0), 10);

  ASSERT_EQ(all.at("evaluations").size(), 1) << all;  // its score ends the run
  const auto& evaluation = all.at("evaluations").at(0);
  EXPECT_EQ(evaluation.at("step"), 2);
  EXPECT_TRUE(evaluation.contains("segm/AP"));
  ASSERT_EQ(all.at("targets").size(), 1);
  const auto& target = all.at("targets").at(0);
  EXPECT_EQ(target.at("score"), "bbox/AP");
  EXPECT_EQ(target.at("step"), 2);
  EXPECT_EQ(target.at("wall_s"), evaluation.at("wall_s"));
  EXPECT_LE(target.at("wall_s").get<double>(), wall);
  EXPECT_LE(target.at("price").get<double>(), used.at("price").get<double>());

  const auto& start = all.at("starts").at(0);
  EXPECT_EQ(start.at("used").at("step"), 2);
  EXPECT_EQ(start.at("price_per_hour"), 3600);
  EXPECT_GT(start.at("ranks").at(0).at("memory_mib"), 0);
  EXPECT_EQ(start.at("data").at("train").at("samples"), 8);
  EXPECT_EQ(start.at("data").at("val").at("samples"), 4);
  for (const auto* split : {"train", "val"}) {
    EXPECT_EQ(start.at("data").at(split).at("digest").get<std::string>().size(), 16);
    EXPECT_EQ(start.at("data").at(split).at("annotations").at("digest").get<std::string>().size(),
              32);
  }
  EXPECT_TRUE(start.at("weights").is_null());
}

TEST_F(Record, SumsSessionsOfResumedRun) {
  {
    Served training(
        Words{MILLRACE_TRAINER} + command({"train.price_per_hour=36", "train.max_steps=100000"}),
        in_folder("log"));
    ASSERT_TRUE(wait_until([&] {
      return fs::exists(run(1) / "record.json") && !record(1).at("evaluations").empty() &&
             record(1).at("starts").at(0).at("used").at("step") >= 3;
    })) << training.log();
    training.end(SIGKILL);
  }
  const auto killed = record(1);
  EXPECT_FALSE(killed.at("starts").at(0).contains("ended"));
  EXPECT_GT(killed.at("used").at("wall_s"), 0);
  const int reached = read_json(run(1) / "checkpoints" / "latest" / "state.json")["state"]["step"];
  train({"train.price_per_hour=72", "train.max_steps=" + std::to_string(reached + 2)},
        {"--resume"});

  const auto all = record(1);
  ASSERT_EQ(all.at("starts").size(), 2);
  const auto &first = all.at("starts").at(0).at("used"),
             &second = all.at("starts").at(1).at("used");
  EXPECT_EQ(first, killed.at("starts").at(0).at("used"));
  EXPECT_EQ(all.at("starts").at(1).at("from_step"), reached);
  EXPECT_EQ(all.at("starts").at(1).at("ended").at("step"), reached + 2);
  for (const auto* key : {"wall_s", "cpu_s", "price"})
    EXPECT_NEAR(all.at("used").at(key), first.at(key).get<double>() + second.at(key).get<double>(),
                kRounding)
        << key;
  EXPECT_NEAR(second.at("price"), second.at("wall_s").get<double>() / 50, kRounding);
  EXPECT_LE(parts_of(all.at("used"), "wall_s"),
            all.at("used").at("wall_s").get<double>() + kRounding);
  // Each evaluation occurs once, with increasing times.
  const auto& evaluations = all.at("evaluations");
  for (std::size_t i = 1; i < evaluations.size(); ++i) {
    EXPECT_EQ(evaluations[i]["step"], evaluations[i - 1]["step"].get<int>() + 2);
    EXPECT_GT(evaluations[i]["wall_s"], evaluations[i - 1]["wall_s"]);
  }
  EXPECT_GE(evaluations.back().at("step"), reached);
}

TEST_F(Record, ResumesRecordOfEarlierVersion) {
  train();
  auto former = record(1);
  for (const auto* key : {"used", "targets", "evaluations"}) former.erase(key);
  for (const auto* key : {"used", "data", "weights"}) former["starts"][0].erase(key);
  former["starts"][0]["ended"]["peak_memory_mib"] = 123;
  fs::remove(run(1) / "record.json");
  write_json(run(1) / "run.json", former);
  EXPECT_THAT(train({}, {"--resume"}).err, AllOf(HasSubstr("maskrcnn-1"), HasSubstr("step 4")));
  EXPECT_THAT(successful(trainer({"status", run(1)})).out, HasSubstr(": done\n"));

  train({"train.max_steps=6"}, {"--resume"});
  EXPECT_FALSE(fs::exists(run(1) / "run.json"));
  const auto all = record(1);
  EXPECT_EQ(all.at("starts").size(), 2);
  EXPECT_EQ(all.at("used").at("wall_s"), all.at("starts").at(1).at("used").at("wall_s"));
}

TEST_F(Record, DiffFindsNoDifferenceForSameRun) {
  train();
  const auto same = diff(run(1), run(1));
  EXPECT_THAT(names(same.at("deciding")) + names(same.at("others")), IsEmpty());
  EXPECT_TRUE(same.at("metrics").at("first").is_null());
  EXPECT_GT(same.at("metrics").at("compared"), 0);
  EXPECT_EQ(same.at("weights").at("a"), same.at("weights").at("b"));
  EXPECT_EQ(same.at("is_bug"), false);
  EXPECT_THAT(successful(trainer({"diff", run(1), run(1)})).out,
              AllOf(HasSubstr("step 4"), HasSubstr(same.at("weights").at("a").get<std::string>())));
}

TEST_F(Record, DiffNamesSeedAndFirstStep) {
  train({"train.seed=1"});
  train({"train.seed=2"});
  const auto other = diff(run(1), run(2));
  EXPECT_THAT(names(other.at("deciding")), ElementsAre("train.seed"));
  EXPECT_EQ(other.at("deciding").at(0).at("a"), "1");
  EXPECT_EQ(other.at("deciding").at(0).at("b"), "2");
  EXPECT_EQ(other.at("metrics").at("same_to"), 0);
  EXPECT_EQ(other.at("metrics").at("first").at("step"), 1);
  EXPECT_EQ(other.at("metrics").at("first").at("name"), "loss");
  EXPECT_NE(other.at("weights").at("a"), other.at("weights").at("b"));
  EXPECT_EQ(other.at("is_bug"), false);
}

TEST_F(Record, DiffIgnoresFoldersAndReports) {
  train();
  train({"callbacks.progress.interval='7 seconds'", "train.price_per_hour=2",
         "callbacks.csv.type='csv'", "train.output='" + in_folder("elsewhere").string() + "'",
         "data.threads=1", "callbacks.evaluate.results=false"});
  auto same = diff(run(1), run(2));
  EXPECT_THAT(names(same.at("deciding")), IsEmpty());
  EXPECT_THAT(names(same.at("others")),
              AllOf(Contains("train.output"), Contains("callbacks.progress.interval"),
                    Contains("callbacks.csv.every"), Contains("data.threads"),
                    Contains("callbacks.evaluate.results"), Contains("command")));
  EXPECT_EQ(same.at("weights").at("a"), same.at("weights").at("b"));
  EXPECT_TRUE(same.at("metrics").at("first").is_null());

  // Different metrics would then be a bug.
  auto lines = read_text(run(2) / "metrics.jsonl");
  const auto third = lines.find("\"loss\":", lines.find("{\"step\":3,"));
  ASSERT_NE(third, std::string::npos);
  lines.replace(third, 7, "\"loss\":9");
  write_text(run(2) / "metrics.jsonl", lines);
  same = diff(run(1), run(2));
  EXPECT_EQ(same.at("metrics").at("same_to"), 2);
  EXPECT_EQ(same.at("metrics").at("first").at("step"), 3);
  EXPECT_EQ(same.at("is_bug"), true);
  EXPECT_THAT(successful(trainer({"diff", run(1), run(2)})).out,
              AllOf(HasSubstr("step 2"), HasSubstr("step 3"), HasSubstr("loss"), HasSubstr("bug")));
}

TEST_F(Record, DiffComparesDataNotFolder) {
  train();
  const auto moved = in_folder("moved");
  fs::copy(data_, moved, fs::copy_options::recursive);
  successful(trainer(command({setting("data.root", moved)})));
  EXPECT_THAT(names(diff(run(1), run(2)).at("deciding")), IsEmpty());

  auto file = moved / "annotations" / "instances_train2017.json";
  auto annotations = read_json(file);
  annotations["annotations"][0]["bbox"][2] =
      annotations["annotations"][0]["bbox"][2].get<double>() / 2;
  write_json(file, annotations);
  successful(trainer(command({setting("data.root", moved)})));
  EXPECT_THAT(names(diff(run(1), run(3)).at("deciding")), ElementsAre("data of training"));
}

TEST_F(Record, DiffRejectsFoldersThatAreNotRuns) {
  fs::create_directories(in_folder("empty"));
  train({"callbacks.evaluate.enabled=false"});
  const auto refused = trainer({"diff", run(1), in_folder("empty")});
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_THAT(refused.err,
              AllOf(HasSubstr("trainer: error: "), HasSubstr(in_folder("empty").string())));
  EXPECT_EQ(refused.out, "");
}

}  // namespace
}  // namespace millrace::testing
