// Compares trainer coco-eval with the metrics of pycocotools.
#include "tests/cli/trainer.h"
#include "tests/support/data.h"

namespace millrace::testing {
namespace {

using CocoEval = Trainer;

TEST_F(CocoEval, MatchesPycocotools) {
  MILLRACE_NEEDS_DATA("eval");
  const auto folder = data_folder() / "eval" / "cocoapi100";
  for (const std::string iou : {"bbox", "segm"}) {
    const auto result = successful(
        trainer({"coco-eval", "--gt", folder / "instances_val2014_100.json", "--dt",
                 (folder / ("instances_val2014_fake" + iou + "100_results.json")).string(), "--iou",
                 iou, "--json"}));
    const auto stats = result.json().at("stats").get<std::vector<double>>();
    ASSERT_EQ(stats.size(), 12U);
    EXPECT_NEAR(stats[0], iou == "bbox" ? 0.505 : 0.320, 5e-4);
    EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 1)
        << "one line, nothing else";
  }
}

/// A data set with one image, one object and an exact detection.
class TinyEval : public Trainer {
 protected:
  TinyEval() {
    write_json(truth_,
               {{"images", {{{"id", 1}, {"file_name", "1.jpg"}, {"width", 64}, {"height", 64}}}},
                {"categories", {{{"id", 3}, {"name", "star"}}}},
                {"annotations",
                 {{{"id", 1},
                   {"image_id", 1},
                   {"category_id", 3},
                   {"bbox", {8, 8, 40, 40}},
                   {"area", 1600},
                   {"iscrowd", 0}}}}});
    write_json(
        found_,
        Json::array(
            {{{"image_id", 1}, {"category_id", 3}, {"bbox", {8, 8, 40, 40}}, {"score", 0.9}}}));
  }

  Outcome evaluate(const Words& more = {"--json"}) {
    return trainer(Words{"coco-eval", "--gt", truth_, "--dt", found_, "--iou", "bbox"} + more);
  }

  fs::path truth_ = in_folder("truth.json"), found_ = in_folder("found.json");
};

TEST_F(TinyEval, ScoresPerfectDetectionAsOne) {
  const auto result = successful(evaluate());
  EXPECT_DOUBLE_EQ(result.json().at("stats").at(0).get<double>(), 1.0);
}

TEST_F(TinyEval, UsesLvisRulesForLvisAnnotations) {
  auto truth = read_json(truth_);
  truth["categories"].push_back({{"id", 4}, {"name", "ring"}, {"frequency", "r"}});
  truth["categories"][0]["frequency"] = "c";
  truth["images"][0]["neg_category_ids"] = {4};
  truth["images"][0]["not_exhaustive_category_ids"] = Json::array();
  write_json(truth_, truth);
  const auto lvis = successful(evaluate()).json();
  EXPECT_EQ(lvis.at("style"), "lvis");
  EXPECT_EQ(lvis.at("stat_names").at(9), "AR@300");
  EXPECT_EQ(lvis.at("stats").at(6), -1) << "no rare object";
  EXPECT_DOUBLE_EQ(lvis.at("stats").at(7).get<double>(), 1) << "APc";
  EXPECT_THAT(successful(evaluate({})).out, HasSubstr("maxDets=300 catIds=  r"));
  EXPECT_EQ(successful(evaluate({"--max-dets", "7", "--json"})).json().at("stat_names").at(9),
            "AR@7");
  EXPECT_EQ(successful(evaluate({"--style", "coco", "--json"})).json().at("style"), "coco");
  expect_error(evaluate({"--analyze"}), 2, "--style coco");
  expect_error(evaluate({"--max-dets", "1,10,100"}), 2, "--max-dets");
  expect_error(trainer({"coco-eval", "--gt", truth_, "--dt", found_, "--iou", "keypoints",
                        "--style", "lvis"}),
               2, "--style lvis");
}

TEST_F(TinyEval, ComputesBoundaryApOfFilledBoxes) {
  const auto result = successful(
      trainer({"coco-eval", "--gt", truth_, "--dt", found_, "--iou", "boundary", "--json"}));
  EXPECT_EQ(result.json().at("iou"), "boundary");
  EXPECT_EQ(result.json().at("stats").size(), 12U);
}

TEST_F(TinyEval, ReportsPascalVocAp) {
  const auto voc = successful(evaluate({"--voc", "--json"})).json().at("voc");
  EXPECT_DOUBLE_EQ(voc.at("map").get<double>(), 1.0);
  EXPECT_DOUBLE_EQ(voc.at("category_ap_2007").at(0).get<double>(), 1.0);
  expect_error(trainer({"coco-eval", "--gt", truth_, "--dt", found_, "--iou", "segm", "--voc"}), 2,
               "--iou bbox");
}

TEST_F(TinyEval, NamesUnreadableOrUnwritableFile) {
  const auto page = in_folder("nowhere") / "page.html", none = in_folder("none.json");
  expect_error(evaluate({"--html", page}), 1, page.string());
  expect_error(evaluate({"--versus", none}), 1, none.string());
  const auto text = read_text(truth_);
  write_text(truth_, text.substr(0, text.size() / 2));
  expect_error(evaluate(), 1, truth_.string());
  write_text(truth_, text);
  fs::remove(found_);
  expect_error(evaluate(), 1, found_.string());
}

TEST_F(TinyEval, AddsAnalysisToMetrics) {
  const auto result =
      successful(evaluate({"--analyze", "--bootstrap", "100", "--versus", found_, "--json"}));
  const Json json = result.json();
  EXPECT_EQ(json.at("stats"), evaluate().json().at("stats"));
  const Json& star = json.at("per_class").at(0);
  EXPECT_EQ(star.at("name"), "star");
  EXPECT_EQ(star.at("objects"), 1);
  EXPECT_EQ(star.at("stats").at("AP"), json.at("stats").at(0));
  EXPECT_EQ(json.at("errors").at("missed").at("count"), 0);
  EXPECT_EQ(json.at("operating_point").at("f1"), 1);
  EXPECT_EQ(json.at("confusion").at("matrix"), Json::parse("[[1,0],[0,0]]"));
  EXPECT_EQ(json.at("curves").at("mean").size(), 10U);
  EXPECT_EQ(json.at("curves").at("mean").at(0).at("precision").size(), 101U);
  EXPECT_EQ(json.at("bootstrap").at("draws"), 100);
  EXPECT_NEAR(json.at("bootstrap").at("AP").at("low").get<double>(), 1, 1e-12);
  EXPECT_EQ(json.at("versus").at("p"), 1);
  EXPECT_EQ(json.at("versus").at("difference").at("AP").at("value"), 0);
}

TEST_F(TinyEval, PrintsAnalysis) {
  const auto result = successful(evaluate({"--analyze", "--bootstrap", "100", "--versus", found_}));
  for (const char* part : {"Average Precision", "IoU 0.50", "F1 1.000", "0.900", "star", "95 %"}) {
    EXPECT_THAT(result.out, HasSubstr(part));
  }
}

TEST_F(TinyEval, WritesCsvAndPage) {
  auto truth = read_json(truth_);
  truth["categories"][0]["name"] = "a \"star\", big";
  write_json(truth_, truth);
  const auto csv = in_folder("classes.csv"), html = in_folder("page.html");
  successful(evaluate({"--csv", csv, "--html", html}));
  EXPECT_THAT(read_text(csv), AllOf(StartsWith("category_id,name,objects,detections,AP,AP50,"),
                                    HasSubstr("\n3,\"a \"\"star\"\", big\",1,1,0.99")));
  EXPECT_THAT(read_text(html), StartsWith("<!DOCTYPE html>"));
}

TEST_F(TinyEval, NamesWrongArguments) {
  for (const std::string draws : {"99", "-1", "many", "1.5"})
    expect_error(evaluate({"--bootstrap", draws}), 2, "--bootstrap");
  for (const std::string limits : {"0", "many"})
    expect_error(evaluate({"--max-dets", limits}), 2, "--max-dets");
  expect_error(trainer({"coco-eval", "--gt", "a", "--dt", "b", "--iou", "mask"}), 2, "segm");
  expect_error(trainer({"coco-eval", "--gt", "a", "--dt", "b", "--iou", "keypoints", "--analyze"}),
               2, "--iou keypoints");
}

TEST_F(TinyEval, RejectsFilesWithoutKeypoints) {
  const Words command = {"coco-eval", "--gt", truth_, "--dt", found_, "--iou", "keypoints"};
  expect_error(trainer(command), 2, truth_.string());
  auto truth = read_json(truth_);
  truth["annotations"][0]["keypoints"] = std::vector<int>(51, 2);
  truth["annotations"][0]["num_keypoints"] = 17;
  write_json(truth_, truth);
  expect_error(trainer(command), 2, found_.string());
}

TEST_F(TinyEval, CountsDetectionsOfUnknownImagesOrClasses) {
  auto found = read_json(found_);
  for (const int image : {1, 7, 8}) {
    found.push_back(found[0]);
    found.back()["image_id"] = image;
    found.back()["category_id"] = 99;
  }
  write_json(found_, found);
  const auto result = evaluate();
  EXPECT_EQ(result.json().at("left_out"), (Json{{"images", 2}, {"categories", 1}}));
  EXPECT_THAT(result.err, HasSubstr("2 detections "));
  EXPECT_THAT(result.err, HasSubstr("1 detection "));
}

TEST_F(TinyEval, ScoresProposalsWithGivenLimits) {
  const auto result = successful(evaluate({"--class-agnostic", "--max-dets", "1000,100,300"}));
  for (const std::string limit : {"100", "300", "1000"})
    EXPECT_THAT(result.out, HasSubstr("maxDets=" + limit + " ] = 1.000"));
}

}  // namespace
}  // namespace millrace::testing
