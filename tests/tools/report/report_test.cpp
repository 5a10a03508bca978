// The viewer's JSON for runs: its scores equal the evaluator's, and it is complete even if parts of
// a run are missing.
#include "millrace/tools/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "millrace/coco/evaluation/evaluate.h"
#include "millrace/tools/report/view.h"
#include "tests/tools/report/run_folders.h"

namespace millrace::report {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::RunFolders;

using nlohmann::ordered_json;

ordered_json view_of(const std::vector<fs::path>& folders, ReportOptions options = {.draws = 100}) {
  const auto runs = read_runs(folders);
  auto view = runs_view(runs, options);
  EXPECT_LT(view_page("runs", "a test", view).size(), 5'000'000U);
  return view;
}

ordered_json run_of(const fs::path& folder, ReportOptions options = {.draws = 100}) {
  return view_of({folder}, std::move(options))["runs"][0];
}

TEST(Report, MatchesEvaluatorScores) {
  const RunFolders folders;
  for (const bool masks : {false, true}) {
    const auto run = folders.make_run("a-1", 10, masks);
    const auto scores = run_of(run)["scores"];
    for (const auto iou : {coco::IouType::box, coco::IouType::mask}) {
      const auto& analysis = scores[iou == coco::IouType::box ? "boxes" : "masks"];
      EXPECT_EQ(analysis.is_null(), iou == coco::IouType::mask && !masks);
      if (analysis.is_null()) continue;
      const auto found = coco::read_detections(run / "detections" / "step-000040.json");
      const auto result = coco::evaluate(*folders.truth(), found, {.iou = iou});
      EXPECT_EQ(analysis["stats"], ordered_json(result.stats));
      for (std::size_t k = 0; k < result.category_ids.size(); ++k) {
        EXPECT_EQ(analysis["per_class"][k]["name"],
                  folders.truth()->text(folders.truth()->categories[k].name));
        EXPECT_EQ(analysis["per_class"][k]["stats"]["AP"], result.category_ap[k]);
      }
    }
  }
}

TEST(Report, ReportsCostOfDetectionLimit) {
  const RunFolders folders;
  const auto run = folders.make_run("a-1");
  fs::create_directories(run / "scores");
  RunFolders::write(run / "scores" / "step-000040.json", R"({"limit": {"text": "7 of 9 images"}})");
  EXPECT_EQ(run_of(run)["limited"], "7 of 9 images");
}

TEST(Report, ReportsEvaluationCost) {
  const RunFolders folders;
  const auto run = folders.make_run("a-1");
  RunFolders::write(run / "metrics.jsonl",
                    "{\"step\":20,\"epoch\":0.5,\"time\":1767225620,\"bbox/AP\":0.1}\n"
                    "{\"step\":40,\"epoch\":1,\"time\":1767225640,\"bbox/AP\":0.3}\n");
  EXPECT_EQ(run_of(run)["evaluations"][1]["price"], nullptr);
  auto record = ordered_json::parse(read_file(run / "record.json"));
  record["evaluations"] = {{{"step", 20}, {"price", 12.25}}, {{"step", 40}, {"price", 24.5}}};
  record["used"] = {{"price", 25.75}};
  RunFolders::write(run / "record.json", record.dump());
  const auto view = run_of(run);
  EXPECT_EQ(view["evaluations"][1], ordered_json::parse(R"({"step": 40, "epoch": 1.0,
    "seconds": 40.0, "price": 24.5, "values": {"bbox/AP": 0.3}})"));
  EXPECT_THAT(view["facts"].dump(), HasSubstr("price 25.75"));
}

TEST(Report, ReturnsSameJsonForSameInput) {
  const RunFolders folders;
  const auto a = folders.make_run("a-1"), b = folders.make_run("b-1", 30);
  EXPECT_EQ(view_of({a, b}), view_of({a, b}));
  EXPECT_EQ(view_of({a}, {.draws = 100, .threads = 1}), view_of({a}, {.draws = 100, .threads = 2}));
}

TEST(Report, AcceptsIncompleteRuns) {
  const RunFolders folders;
  const auto run = folders.make_run("a-1");
  const auto remarks = [&] { return run_of(run)["remarks"].dump(); };
  const auto metrics = read_file(run / "metrics.jsonl");
  RunFolders::write(run / "metrics.jsonl", metrics.substr(0, metrics.size() - 30));
  EXPECT_THAT(remarks(), HasSubstr("metrics.jsonl"));
  EXPECT_EQ(run_of(run)["metrics"]["loss"], ordered_json::parse("[[20, 2.0]]"));
  fs::remove(run / "metrics.jsonl");
  EXPECT_THAT(remarks(), HasSubstr("No metrics.jsonl"));
  EXPECT_EQ(run_of(run)["metrics"], ordered_json::object());
  fs::remove_all(run / "detections");
  EXPECT_THAT(run_of(run)["no_scores"], HasSubstr("no detections yet"));
  EXPECT_EQ(run_of(run)["scores"], nullptr);
  fs::remove(run / "config.toml");
  EXPECT_THAT(remarks(), HasSubstr("No config.toml"));
}

TEST(Report, ReportsMissingData) {
  const RunFolders folders;
  const auto run = folders.make_run("a-1");
  fs::remove(folders.data() / "val2017" / "000000000002.jpg");
  EXPECT_THAT(run_of(run)["scores"]["pictures"]["problem"], HasSubstr("000000000002.jpg"));
  fs::remove(folders.data() / "annotations" / "instances_val2017.json");
  EXPECT_THAT(run_of(run)["no_scores"], HasSubstr("cannot score"));
  fs::remove_all(folders.data());
  EXPECT_THAT(run_of(run)["no_scores"], HasSubstr("folder"));
}

TEST(Report, ReportsDamagedDetections) {
  const RunFolders folders;
  const auto run = folders.make_run("a-1");
  RunFolders::write(run / "detections" / "step-000040.json", "[{\"image_id\": 2,");
  EXPECT_THAT(run_of(run)["no_scores"], HasSubstr("cannot score"));
}

TEST(Report, ReportsContradictingScores) {
  const RunFolders folders;
  const auto run = folders.make_run("a-1");
  EXPECT_EQ(run_of(run)["scores"]["contradiction"], nullptr);
  std::ofstream(run / "metrics.jsonl", std::ios::app)
      << "{\"step\":40,\"epoch\":1,\"time\":1767225640,\"bbox/AP\":0.999}\n";
  const auto scores = run_of(run)["scores"];
  EXPECT_EQ(scores["contradiction"]["logged"], .999);
  EXPECT_EQ(scores["contradiction"]["now"], scores["boxes"]["stats"][0]);
}

TEST(Report, ComparesRunsWithFirstRun) {
  const RunFolders folders;
  const auto good = folders.make_run("good-1", 1), bad = folders.make_run("bad-1", 60);
  const auto second = [](const ordered_json& view) { return view["runs"][1]["verdicts"][0]; };
  EXPECT_EQ(second(view_of({good, bad}))["leaning"], "worse");
  EXPECT_EQ(second(view_of({bad, good}))["leaning"], "better");
  EXPECT_EQ(view_of({good, bad})["runs"][0]["verdicts"], ordered_json::array());
  const auto same = folders.make_run("same-1", 1);
  EXPECT_EQ(second(view_of({good, same}))["leaning"], "");
  EXPECT_THAT(second(view_of({good, same}))["text"], HasSubstr("no difference"));
}

TEST(Report, DoesNotCompareRunsOnDifferentImages) {
  const RunFolders folders, others;
  fs::remove(others.data() / "annotations" / "instances_val2017.json");
  fs::copy_file(others.data() / "annotations" / "instances_train2017.json",
                others.data() / "annotations" / "instances_val2017.json");
  const auto a = folders.make_run("a-1"), b = others.make_run("b-1");
  EXPECT_EQ(view_of({a, b})["runs"][1]["verdicts"], ordered_json::array());
}

TEST(Report, KeepsExtremesOfLongMetrics) {
  const RunFolders folders;
  const auto run = folders.make_run("a-1");
  std::string lines;
  for (int step = 1; step <= 20'000; ++step)
    lines += fmt::format("{{\"step\":{},\"loss\":{}}}\n", step,
                         step == 12'345  ? "77"
                         : step == 4'321 ? "null"
                                         : fmt::format("{}", step % 7));
  RunFolders::write(run / "metrics.jsonl", lines);
  const auto points = run_of(run)["metrics"]["loss"];
  EXPECT_LT(points.size(), 1'010U);
  EXPECT_THAT(points.dump(), AllOf(HasSubstr("[12345,77.0]"), HasSubstr("[4321,null]")));
}

TEST(Report, ReportsVerdictWithinNoise) {
  coco::Comparison comparison;
  comparison.a.ap = .312, comparison.b.ap = .310;
  comparison.difference.ap = {.002, -.004, .009};
  comparison.p = .4;
  EXPECT_THAT(verdict(comparison, "b", "a"),
              AllOf(HasSubstr("+0.20 AP (31.20 versus 31.00)"), HasSubstr("-0.40 to +0.90"),
                    HasSubstr("p = 0.400: within noise")));
  comparison.p = .01;
  EXPECT_THAT(verdict(comparison, "b", "a"), HasSubstr("b is better"));
}

TEST(Report, ChoosesWorstAndBestImages) {
  const RunFolders folders;
  auto runs = read_runs(std::vector<fs::path>{folders.make_run("a-1")});
  const auto scores = score(runs[0], find_truth(runs[0]), 0, 1);
  const auto all = tallies(scores, .5);
  const auto few = chosen_images(scores, .5, 5);
  ASSERT_EQ(few.size(), 5);
  double lowest = 1, highest = 0;
  for (const auto& one : all) {
    lowest = std::min(lowest, one.f1());
    if (one.objects > 0) highest = std::max(highest, one.f1());
  }
  EXPECT_EQ(all[few.front()].f1(), lowest);
  EXPECT_EQ(all[few.back()].f1(), highest);
  EXPECT_EQ(chosen_images(scores, .5, 100).size(), testing::kImages);
  int objects = 0, hits = 0;
  for (const auto& one : tallies(scores, 0)) objects += one.objects, hits += one.hits;
  EXPECT_EQ(objects, static_cast<int>(folders.truth()->annotations.size()));
  EXPECT_GT(hits, objects / 2);
}

TEST(Report, ReportsShapesThatAreNotDrawn) {
  const RunFolders folders;
  const auto run = folders.make_run("a-1");
  auto found = nlohmann::json::parse(read_file(run / "detections" / "step-000040.json"));
  auto copy = found[0];
  for (int i = 0; i < 40; ++i) found.push_back(copy), copy["score"] = .5 + i * .001;
  RunFolders::write(run / "detections" / "step-000040.json", found.dump());
  std::size_t cut = 0;
  const auto view = run_of(run, {.draws = 0});
  for (const auto& one : view["scores"]["pictures"]["images"]) {
    EXPECT_LE(one["found"].size(), 30U);
    cut += one.contains("note");
  }
  EXPECT_EQ(cut, 1U);
}

TEST(Report, LimitsImageBytes) {
  const RunFolders folders;
  const auto run = folders.make_run("a-1");
  const auto bytes = [&](const PictureLimits& limits) {
    return run_of(run, {.draws = 0, .pictures = limits})["scores"]["pictures"].dump().size();
  };
  EXPECT_LT(bytes({.images = 12, .bytes = 60'000}), 80'000U);
  EXPECT_GT(bytes({}), 150'000U);
  const auto few = run_of(run, {.draws = 0, .pictures = {.images = 3, .bytes = 60'000}});
  EXPECT_EQ(few["scores"]["pictures"]["images"].size(), 3U);
}

}  // namespace
}  // namespace millrace::report
