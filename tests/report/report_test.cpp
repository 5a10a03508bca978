// The page of runs: its figures are the evaluator's, and it is whole whatever is missing.
#include "millrace/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "millrace/coco/evaluation/evaluate.h"
#include "tests/page/pages.h"
#include "tests/report/run_folders.h"

namespace millrace::report {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RunFolders;

std::string page_of(const std::vector<fs::path>& folders, ReportOptions options = {.draws = 100}) {
  const auto runs = read_runs(folders);
  const auto html = report_page(runs, options);
  testing::expect_self_contained(html);
  EXPECT_THAT(testing::without_code(html), Not(ContainsRegex(">-?(nan|inf)")));
  EXPECT_LT(html.size(), 5'000'000);
  return html;
}

std::string per_cent(double share) { return fmt::format("{:.1f}", 100 * share); }

TEST(Report, ItsScoresAreTheEvaluators) {
  const RunFolders folders;
  for (const bool masks : {false, true}) {
    const auto run = folders.make_run("a-1", 10, masks);
    const auto html = page_of({run});
    for (const auto iou : {coco::IouType::box, coco::IouType::mask}) {
      if (iou == coco::IouType::mask && !masks) continue;
      const auto found = coco::read_detections(run / "detections" / "step-000040.json");
      const auto result = coco::evaluate(*folders.truth(), found, {.iou = iou});
      EXPECT_THAT(html, HasSubstr(fmt::format("<b>{} AP</b>", per_cent(result.stats[0]))));
      for (const auto& [i, name] : std::vector<std::pair<std::size_t, std::string>>{
               {1, "AP50"}, {2, "AP75"}, {3, "AP small"}, {4, "AP medium"}, {8, "AR"}})
        EXPECT_THAT(html, HasSubstr(fmt::format(
                              "<b>{}</b><span>{}</span>",
                              result.stats[i] < 0 ? "&ndash;" : per_cent(result.stats[i]), name)));
      for (std::size_t k = 0; k < result.category_ids.size(); ++k)
        EXPECT_THAT(html,
                    ContainsRegex(fmt::format(
                        "<th>{}</th><td>[0-9]+</td><td>[0-9]+</td><td>{}</td>",
                        folders.truth()->text(folders.truth()->categories[k].name),
                        result.category_ap[k] < 0 ? "&ndash;" : per_cent(result.category_ap[k]))));
    }
  }
}

TEST(Report, SaysWhatTheLimitOfDetectionsCosts) {
  const RunFolders folders;
  const auto run = folders.make_run("a-1");
  std::ofstream(run / "metrics.jsonl", std::ios::app)
      << R"({"step":40,"epoch":1,"time":1767225700,"bbox/AP":0.5})"
      << "\n";
  fs::create_directories(run / "scores");
  RunFolders::write(run / "scores" / "step-000040.json",
                    R"({"limit": {"text": "7 of 9 images have more"}})");
  EXPECT_THAT(page_of({run}), HasSubstr("7 of 9 images have more"));
}

TEST(Report, SaysWhatALevelOfApHadCost) {
  const RunFolders folders;
  const auto run = folders.make_run("a-1");
  RunFolders::write(run / "metrics.jsonl",
                    "{\"step\":20,\"epoch\":0.5,\"time\":1767225620,\"bbox/AP\":0.1}\n"
                    "{\"step\":40,\"epoch\":1,\"time\":1767225640,\"bbox/AP\":0.3}\n");
  EXPECT_THAT(page_of({run}), Not(HasSubstr("price")));
  auto record = nlohmann::ordered_json::parse(read_file(run / "record.json"));
  record["evaluations"] = {{{"step", 20}, {"price", 12.25}}, {{"step", 40}, {"price", 24.5}}};
  record["used"] = {{"price", 25.75}};
  RunFolders::write(run / "record.json", record.dump());
  EXPECT_THAT(page_of({run}),
              AllOf(ContainsRegex("<td>40</td><td>1.00</td><td>40.0 s</td><td>24.50</td>"),
                    HasSubstr("price 25.75")));
}

TEST(Report, EqualInputGivesEqualBytes) {
  const RunFolders folders;
  const auto a = folders.make_run("a-1"), b = folders.make_run("b-1", 30);
  EXPECT_EQ(page_of({a, b}), page_of({a, b}));
  EXPECT_EQ(page_of({a}, {.draws = 100, .threads = 1}), page_of({a}, {.draws = 100, .threads = 2}));
}

TEST(Report, IsWholeAtEveryMomentOfATraining) {
  const RunFolders folders;
  const auto run = folders.make_run("a-1");
  const auto metrics = read_file(run / "metrics.jsonl");
  RunFolders::write(run / "metrics.jsonl", metrics.substr(0, metrics.size() - 30));
  EXPECT_THAT(page_of({run}), HasSubstr("written in part"));
  fs::remove(run / "metrics.jsonl");
  EXPECT_THAT(page_of({run}), HasSubstr("no metrics.jsonl yet"));
  fs::remove_all(run / "detections");
  EXPECT_THAT(page_of({run}), HasSubstr("no detections yet"));
  fs::remove(run / "config.toml");
  EXPECT_THAT(page_of({run}), HasSubstr("no config.toml"));
}

TEST(Report, SaysWhatOfTheDataIsMissing) {
  const RunFolders folders;
  const auto run = folders.make_run("a-1");
  fs::remove(folders.data() / "val2017" / "000000000002.jpg");
  EXPECT_THAT(page_of({run}), HasSubstr("1 image cannot be shown"));
  fs::remove(folders.data() / "annotations" / "instances_val2017.json");
  EXPECT_THAT(page_of({run}), HasSubstr("its detections cannot be scored"));
  fs::remove_all(folders.data());
  EXPECT_THAT(page_of({run}), HasSubstr("no data folder"));
}

TEST(Report, DamagedDetectionsAreASentence) {
  const RunFolders folders;
  const auto run = folders.make_run("a-1");
  RunFolders::write(run / "detections" / "step-000040.json", "[{\"image_id\": 2,");
  EXPECT_THAT(page_of({run}), HasSubstr("its detections cannot be scored"));
}

TEST(Report, NamesAreText) {
  const RunFolders folders;
  const auto run = folders.make_run("<b>bold-1");
  const auto file = folders.data() / "annotations" / "instances_val2017.json";
  auto json = nlohmann::json::parse(read_file(file));
  const std::string evil = "</script><script>alert(1)</script>";
  json["categories"][0]["name"] = evil;
  RunFolders::write(file, json.dump());
  const auto html = page_of({run});
  EXPECT_THAT(html, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(html, HasSubstr("&lt;/script&gt;&lt;script&gt;alert(1)"));
  EXPECT_THAT(html, HasSubstr("<h1>&lt;b&gt;bold-1</h1>"));
  EXPECT_THAT(html, HasSubstr("&lt;b&gt;.toml"));  // of the command
}

TEST(Report, ContradictingScoresAreAWarning) {
  const RunFolders folders;
  const auto run = folders.make_run("a-1");
  std::ofstream(run / "metrics.jsonl", std::ios::app)
      << "{\"step\":40,\"epoch\":1,\"time\":1767225640,\"bbox/AP\":0.999}\n";
  EXPECT_THAT(page_of({run}), HasSubstr("metrics.jsonl says AP 99.90 at step 40"));
}

TEST(Report, RunsAreComparedWithTheFirst) {
  const RunFolders folders;
  const auto good = folders.make_run("good-1", 1), bad = folders.make_run("bad-1", 60);
  const auto html = page_of({good, bad});
  EXPECT_THAT(html, HasSubstr("bad-1 is worse than good-1 by more than the choice of images"));
  EXPECT_THAT(html, HasSubstr("Values that differ: 1"));
  EXPECT_THAT(html, HasSubstr("optimizer.lr"));
  EXPECT_THAT(page_of({bad, good}), HasSubstr("good-1 is better than bad-1"));
  const auto same = folders.make_run("same-1", 1);
  EXPECT_THAT(page_of({good, same}), HasSubstr("no difference, whichever images are drawn"));
}

TEST(Report, RunsOnOtherImagesAreNotCompared) {
  const RunFolders folders, others;
  fs::remove(others.data() / "annotations" / "instances_val2017.json");
  fs::copy_file(others.data() / "annotations" / "instances_train2017.json",
                others.data() / "annotations" / "instances_val2017.json");
  const auto a = folders.make_run("a-1"), b = others.make_run("b-1");
  EXPECT_THAT(page_of({a, b}), HasSubstr("No verdict"));
}

TEST(Report, AVerdictWithinNoiseSaysNotToConclude) {
  coco::Comparison comparison;
  comparison.a.ap = .312, comparison.b.ap = .310;
  comparison.difference.ap = {.002, -.004, .009};
  comparison.p = .4;
  EXPECT_EQ(
      verdict(comparison, "b", "a"),
      "+0.20 AP (31.20 against 31.00), 95 % interval -0.40 to +0.90, p = 0.400: within noise. "
      "Other images of the same kind could as well show the opposite; do not conclude that "
      "either run is better.");
  comparison.p = .01;
  EXPECT_THAT(verdict(comparison, "b", "a"), HasSubstr("b is better than a"));
}

TEST(Report, ChoosesTheWorstAndTheBestImages) {
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

TEST(Report, ItsPicturesKeepToTheirBytes) {
  const RunFolders folders;
  const auto run = folders.make_run("a-1");
  const auto whole = page_of({run});
  const auto small = page_of({run}, {.draws = 0, .pictures = {.images = 12, .bytes = 60'000}});
  EXPECT_LT(small.size() + 60'000, whole.size());
  const auto few = page_of({run}, {.draws = 0, .pictures = {.images = 3, .bytes = 60'000}});
  EXPECT_THAT(few, HasSubstr("3 images of 12"));
}

}  // namespace
}  // namespace millrace::report
