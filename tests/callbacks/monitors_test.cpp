// Output of a training run: tables, event files, traces, and speed and memory metrics.
#include <gmock/gmock.h>

#include <csignal>
#include <set>

#include "millrace/callbacks/common/event_records.h"
#include "millrace/callbacks/common/gpu_meter.h"
#include "millrace/callbacks/common/time_left.h"
#include "millrace/coco/drawing/draw.h"
#include "tests/callbacks/events.h"
#include "tests/callbacks/training.h"
#include "tests/support/log.h"
#include "tests/support/page_json.h"
#include "tests/support/python.h"
#include "tests/support/thrown.h"
#include "tests/support/wait.h"

namespace millrace::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::Not;

const Declared kMonitors = {{"log", "every = '2 steps'"},
                            {"csv", "every = '2 steps'"},
                            {"tensorboard", "every = '2 steps'\nhistograms = '1 epoch'"},
                            {"throughput", "every = '2 steps'"},
                            {"checkpoint", "every = '3 steps'"},
                            {"evaluate", "every = '1 epoch'"}};

std::vector<std::string> csv_rows(const std::filesystem::path& run) {
  std::vector<std::string> rows;
  std::istringstream text(read_file(run / "metrics.csv"));
  for (std::string row; std::getline(text, row);)
    if (row.find(",time/") == std::string::npos) rows.push_back(row);
  return rows;
}

TEST(CsvCallback, MatchesMetricsFile) {
  const Scratch scratch;
  Training{.folder = scratch / "run", .declared = kMonitors}();
  const auto rows = csv_rows(scratch / "run");
  EXPECT_EQ(rows.at(0), "step,epoch,name,value");
  std::size_t figures = 0;
  for (const auto& line : metrics(scratch / "run"))
    for (const auto& [name, value] : line.items()) {
      if (name == "step" || name == "epoch" || name.starts_with("time")) continue;
      EXPECT_THAT(rows,
                  Contains(fmt::format("{},{},{},{}", line.at("step").get<int>(),
                                       line.at("epoch").get<double>(), name, value.get<double>())));
      ++figures;
    }
  EXPECT_EQ(rows.size(), figures + 1);
}

TEST(EventRecords, HaveValidChecksums) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);            // the check value in CRC-32C's definition
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);  // RFC 3720, B.4
  auto record = scalar_record({3, 1.5}, "loss", 0.25);
  EXPECT_EQ(payloads(record + record).size(), 2U);
  record[14] ^= 1;
  EXPECT_THROW(payloads(record), std::runtime_error);
}

TEST(EventRecords, CountFiniteValuesOnceInHistograms) {
  std::vector<float> values = {NAN, INFINITY};
  for (int i = 0; i <= 300; ++i) values.push_back(static_cast<float>(i) * 0.01F - 1);
  const auto histogram = histogram_of(values);
  EXPECT_EQ(histogram.min, -1);
  EXPECT_EQ(histogram.max, 2);
  EXPECT_EQ(histogram.limits.back(), 2);
  double count = 0;
  for (const auto in_bucket : histogram.counts) count += in_bucket;
  EXPECT_EQ(count, 301);
  EXPECT_THAT(histogram_of(std::vector<float>(5, 3)).counts, ElementsAre(5));
  EXPECT_TRUE(histogram_of({}).counts.empty());
}

/// Reads the event files with TensorBoard's own reader.
nlohmann::json read_by_tensorboard(const std::filesystem::path& run) {
  const auto out = run / "events.json", errors = run / "errors.txt";
  const auto status =
      run_python(fmt::format("tests/callbacks/events.py '{}' > '{}' 2> '{}'",
                             (run / "tensorboard").string(), out.string(), errors.string()));
  if (status != 0) throw Error(read_file(errors));
  return nlohmann::json::parse(read_file(out));
}

TEST(TensorBoardCallback, IsReadableByTensorBoard) {
  MILLRACE_NEEDS_PYTHON("tensorboard");
  const Scratch scratch;
  const Training run{.folder = scratch / "run", .declared = kMonitors};
  run.killed_after(8);
  const auto seen = read_by_tensorboard(run.folder);

  std::map<std::string, nlohmann::json> expected;
  for (const auto& line : metrics(run.folder))
    for (const auto& [name, value] : line.items())
      if (name != "step" && name != "epoch" && !name.starts_with("time"))
        expected[name].push_back({line.at("step"), value.get<float>()});
  for (const auto& [name, points] : expected) EXPECT_EQ(seen.at("scalars").at(name), points);
  EXPECT_TRUE(seen.at("scalars").contains("time/images_per_s"));

  const auto& weights = seen.at("histograms").at("line.weight");
  ASSERT_EQ(weights.size(), 3U);
  for (std::size_t epoch = 0; epoch < 3; ++epoch) {
    EXPECT_EQ(weights[epoch][0], 5 * (epoch + 1));
    EXPECT_EQ(weights[epoch][1], 3);
    EXPECT_EQ(weights[epoch][4], 3);
  }
  const auto& losses = seen.at("histograms").at("histogram/loss");
  ASSERT_EQ(losses.size(), 3U);
  for (const auto& of_epoch : losses) EXPECT_EQ(of_epoch[1], 5) << "one value per step";
}

TEST(TensorBoardCallback, WritesPublishedPictures) {
  MILLRACE_NEEDS_PYTHON("tensorboard");
  const Scratch scratch;
  const auto jpeg = scratch / "picture.jpg";
  coco::write_picture(jpeg, cv::Mat(20, 40, CV_8UC3, cv::Scalar(10, 200, 90)));
  Training{.folder = scratch / "run",
           .declared = {{"tensorboard", ""}},
           .before_step = [&](const TrainState& s) {
             if (s.at.step == 3) s.publish_picture({"pictures/7", jpeg});
           }}();
  EXPECT_EQ(read_by_tensorboard(scratch / "run").at("images").at("pictures/7"),
            nlohmann::json::array({{4, 40, 20, std::filesystem::file_size(jpeg)}}));
}

TEST(ThroughputCallback, ReportsTimesAndSlowCallback) {
  const Scratch scratch;
  Log log;
  Training{.folder = scratch / "run",
           .declared = {{"log", ""}, {"throughput", "every = '15 steps'"}},
           .before_step = [](const TrainState& s) {
             if (s.at.step == 2 || s.at.step == 6) ::usleep(1'050'000);
           }}();
  const auto line = metrics(scratch / "run").at(0);
  for (const auto* name : {"time/images_per_s", "time/step_s", "time/data_wait_s",
                           "time/data_wait_share", "time/callbacks_s"})
    EXPECT_GT(line.at(name).get<double>(), 0) << name;
  EXPECT_GE(line.at("time/callbacks/test_s").get<double>(), 2 * 1.05 / 15);
  double all = 0;
  for (const auto* part : {"data_wait", "compute", "callbacks", "checkpoints"})
    all += line.at(std::string("time/") + part + "_share").get<double>();
  EXPECT_NEAR(all, 1, 0.1);
  EXPECT_GT(line.at("time/callbacks_share"), 0.5);
  const auto text = log.take();
  EXPECT_THAT(text, ::testing::ContainsRegex("bound by callbacks: .*'test'"));
  const auto first = text.find("callback 'test' took ");
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_EQ(text.find("callback 'test'", first + 1), std::string::npos) << text;
}

TEST(ResourcesCallback, MeasuresHostMemory) {
  const Scratch scratch;
  Log log;
  Training{.folder = scratch / "run",
           .declared = {{"log", "every = '5 steps'"}, {"resources", "every = '5 steps'"}}}();
  for (const auto& line : metrics(scratch / "run")) {
    EXPECT_GT(line.at("time/memory_mib"), 1);
    EXPECT_GE(line.at("time/memory_peak_mib"), line.at("time/memory_mib"));
    EXPECT_FALSE(line.contains("time/device_memory_peak_mib")) << "on the CPU";
  }
  const auto gpus = gpu_use();
  EXPECT_EQ(log.take().find("no NVIDIA GPU") != std::string::npos, gpus.empty());
  for (const auto& gpu : gpus) EXPECT_TRUE(gpu.busy >= 0 && gpu.busy <= 1);
}

TEST(TimeLeft, IncludesEvaluations) {
  TimeLeft left;
  EXPECT_EQ(left.seconds(10), 0);
  for (int step = 0; step < 100; ++step) left.add(2, step % 50 == 49 ? 100 : 0);
  EXPECT_NEAR(left.seconds(100), 100 * 2 + 2 * 100, 1e-9);
  for (int step = 0; step < 200; ++step) left.add(1, 0);  // the steps have become shorter
  EXPECT_NEAR(left.seconds(300), 300 + 200, 1);
}

TEST(ProfileCallback, WritesTraceWithNestedSpans) {
  const Scratch scratch;
  Training{.folder = scratch / "run",
           .declared = {{"profile", "from_step = 4\nsteps = 2"}, {"log", ""}}}();
  const auto trace =
      nlohmann::json::parse(read_file(scratch / "run" / "traces" / "step-000004.json"));
  struct Span {
    std::string name;
    double begin, end;
  };
  std::map<int, std::vector<Span>> threads;
  std::set<std::string> names;
  std::map<int, std::string> thread_names;
  for (const auto& event : trace.at("traceEvents")) {
    const int thread = event.at("tid");
    if (event.at("ph") == "M") {
      thread_names[thread] = event.at("args").at("name");
      continue;
    }
    ASSERT_EQ(event.at("ph"), "X");
    const double begin = event.at("ts"), took = event.at("dur");
    ASSERT_GE(took, 0);
    names.insert(event.at("name").get<std::string>());
    threads[thread].push_back({event.at("name"), begin, begin + took});
  }
  EXPECT_THAT(names, Contains("waits for data"));
  EXPECT_THAT(names, Contains(HasSubstr("takes step 4 with images ")));
  EXPECT_THAT(names, Contains(HasSubstr("takes step 5 with images ")));
  EXPECT_THAT(names, Not(Contains(HasSubstr("takes step 6"))));
  EXPECT_THAT(names, Contains("callback 'log' in after_step"));
  EXPECT_THAT(names, Contains("aten::mul"));
  constexpr double kRounding = 1e-2;  // a double cannot represent microseconds since boot exactly
  for (auto& [thread, spans] : threads) {
    EXPECT_TRUE(thread_names.contains(thread)) << thread;
    std::ranges::sort(spans, [](const Span& a, const Span& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
    });
    std::vector<Span> open;
    for (const auto& span : spans) {
      while (!open.empty() && open.back().end <= span.begin + kRounding) open.pop_back();
      const auto within = open.empty() ? span : open.back();
      EXPECT_LE(span.end, within.end + kRounding) << span.name << " in " << within.name;
      open.push_back(span);
    }
  }
}

TEST(ProfileCallback, ReportsUnreachableSteps) {
  const Scratch scratch;
  Log log;
  Training run{.folder = scratch / "run", .declared = {{"profile", "from_step = 400"}}};
  run();
  EXPECT_THAT(log.take(), AllOf(HasSubstr("profile: from_step = 400"), HasSubstr("15 steps")));
  EXPECT_FALSE(std::filesystem::exists(scratch / "run" / "traces"));
  run.folder = scratch / "stopped";
  run.declared = {{"profile", "from_step = 12"}, {"checkpoint", ""}};
  run.before_step = [](const TrainState& s) {
    if (s.at.step == 7) s.stop("enough");
  };
  run();
  EXPECT_THAT(log.take(),
              AllOf(HasSubstr("profile: "), HasSubstr("8 steps"), HasSubstr("from_step = 12")));
  run.declared[0].second = "from_step = 3";
  run();
  EXPECT_THAT(log.take(), HasSubstr("profile: step 3"));
}

TEST(PicturesCallback, ToleratesImagesThatCannotBeDrawn) {
  const Scratch scratch;
  Log log;
  const auto end = Training{.folder = scratch / "run",
                            .declared = {{"pictures", "every = '1 epoch'\ncount = 2"}}}();
  EXPECT_EQ(end.at.step, 15);
  EXPECT_THAT(log.take(), AllOf(HasSubstr("warning callback 'pictures': "), HasSubstr("nowhere/")));
  write_file_atomically(scratch / "file", "where the folder should be");
  Training{.folder = scratch / "run",
           .declared = {{"pictures", "every = '1 epoch'"}},
           .before_step = [&](const TrainState& s) {
             const_cast<TrainState&>(s).folder = scratch / "file";
           }}();
  EXPECT_THAT(log.take(), AllOf(HasSubstr("warning callback 'pictures': "), HasSubstr("step 5: ")));
}

TEST(PicturesCallback, RejectsStagesForOneStageDetector) {
  const Scratch scratch;
  EXPECT_THAT(message_of([&] {
                Training{.folder = scratch / "run", .declared = {{"pictures", "stages = true"}}}();
              }),
              HasSubstr("callbacks.pictures.stages: "));
}

const Declared kReported = {
    {"log", "every = '2 steps'"}, {"evaluate", "every = '1 epoch'"}, {"report", ""}};

/// Returns the JSON of the only run in the report page of a run's folder.
nlohmann::json report_of(const std::filesystem::path& run) {
  return page_json(read_file(run / "report.html"))["runs"][0];
}

TEST(ReportCallback, WritesPageForWholeRun) {
  const Scratch scratch;
  for (const std::string mode : {"inline", "score_in_background", "background"}) {
    auto declared = kReported;
    declared[1].second += fmt::format("\nmode = '{}'", mode);
    declared.emplace_back("checkpoint", "");
    const auto end = Training{.folder = scratch / mode, .declared = declared}();
    EXPECT_EQ(end.at.step, 15);
    const auto shown = report_of(scratch / mode);
    EXPECT_EQ(shown["standing_text"], "done after step 15");
    EXPECT_EQ(shown["scores"]["step"], 15);
  }
}

TEST(ReportCallback, WritesPageAfterEvaluation) {
  const Scratch scratch;
  bool was_there = false;
  Training{
      .folder = scratch / "run", .declared = kReported, .before_step = [&](const TrainState& s) {
        const auto page = scratch / "run" / "report.html";
        EXPECT_FALSE(s.at.step < 5 && std::filesystem::exists(page));
        if (s.at.step != 10) return;
        EXPECT_TRUE(wait_until([&] { return std::filesystem::exists(page); }));
        was_there = report_of(scratch / "run")["scores"].is_object();
      }}();
  EXPECT_TRUE(was_there);
}

TEST(ReportCallback, DoesNotChangeTraining) {
  const Scratch scratch;
  const Training with{.folder = scratch / "with", .declared = kReported};
  Training without{.folder = scratch / "without", .declared = kReported};
  without.declared.pop_back();
  with(), without();
  const auto scores = [](const std::filesystem::path& run) {
    return read_file(run / "scores" / "step-000015.json");
  };
  EXPECT_EQ(scores(with.folder), scores(without.folder));
  EXPECT_EQ(metrics(with.folder).size(), metrics(without.folder).size());
}

TEST(ReportCallback, ContinuesTrainingIfItFails) {
  const Scratch scratch;
  Log log;
  std::filesystem::create_directories(scratch / "run" / "report.html" / "in the way");
  const auto end = Training{.folder = scratch / "run", .declared = kReported}();
  EXPECT_EQ(end.at.step, 15);
  EXPECT_THAT(log.take(),
              AllOf(HasSubstr("warning callback 'report': "), HasSubstr("report.html")));
}

TEST(ReportCallback, ReportsWhyRunEnded) {
  const Scratch scratch;
  Training run{.folder = scratch / "stopped", .declared = kReported};
  run.before_step = [](const TrainState& s) {
    if (s.at.step == 7) s.stop("enough <b>");
  };
  run();
  EXPECT_EQ(report_of(run.folder)["standing_text"], "stopped by enough <b> after step 8");
  run.folder = scratch / "failed";
  run.before_step = [](const TrainState& s) {
    if (s.at.step == 7) throw Error("the disk is full");
  };
  EXPECT_THROW(run(), Error);
  EXPECT_EQ(report_of(run.folder)["standing"], "broken");
  EXPECT_THAT(report_of(run.folder)["standing_text"], HasSubstr("the disk is full"));
}

TEST(Monitors, WriteSameOutputAfterResume) {
  const Scratch scratch;
  Training whole{.folder = scratch / "whole", .declared = kMonitors};
  for (int i = 0; i < 3; ++i) whole.declared[i].second = "every = '4 steps'";
  ASSERT_EQ(whole.in_child(), 0);
  const auto expect_whole = [&](const std::filesystem::path& run) {
    EXPECT_EQ(csv_rows(run), csv_rows(whole.folder)) << run;
    EXPECT_EQ(scalars_of_events(run), scalars_of_events(whole.folder)) << run;
  };
  auto stopped = whole;
  stopped.folder = scratch / "stopped";
  stopped.before_step = [](const TrainState& s) {
    if (s.at.step == 6) std::raise(SIGTERM);
  };
  ASSERT_EQ(stopped.in_child(), 0);
  EXPECT_EQ(metrics(stopped.folder).back().at("step"), 7);  // the last, incomplete window
  stopped.before_step = {};
  ASSERT_EQ(stopped.in_child(), 0);
  expect_whole(stopped.folder);
  for (const std::int64_t victim : {1, 4, 8, 13}) {
    stopped.folder = scratch / ("killed-" + std::to_string(victim));
    stopped.killed_after(victim);
    expect_whole(stopped.folder);
  }
}

}  // namespace
}  // namespace millrace::testing
