// Runs trainer predict on many files: killed and resumed, and with broken files.
#include <csignal>

#include "tests/cli/trainer.h"
#include "tests/support/exif.h"
#include "tests/support/page_json.h"
#include "tests/support/tiff.h"
#include "tests/support/videos.h"
#include "tests/support/wait.h"

namespace millrace::testing {
namespace {

class Predict : public TrainerOnData {
 protected:
  /// Trains for one step and returns the run's folder.
  fs::path model() {
    successful(trainer(
        on(data_, {"run", "--out", in_folder("runs")}, kTrainOnly + Words{"train.max_steps=1"})));
    return in_folder("runs") / "maskrcnn-1";
  }

  /// Makes a folder of `count` photos; every seventh is broken.
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

  /// Reads the files of a folder, by name.
  static std::map<std::string, std::string> all_in(const fs::path& folder) {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::directory_iterator(folder))
      files[entry.path().filename()] = read_text(entry.path());
    return files;
  }
};

TEST_F(Predict, ResumesToSameBytesAfterKill) {
  const auto weights = model(), folder = photos(24);
  const auto into = [&](const fs::path& out, const Words& more = {}) {
    return Words{"predict", weights, folder, "--out", out} + more;
  };
  const auto whole = trainer(into(in_folder("whole")));
  EXPECT_EQ(whole.exit_code, 1);
  EXPECT_THAT(whole.err, HasSubstr("3 of 24 images"));
  const auto expected = all_in(in_folder("whole"));
  EXPECT_EQ(expected.size(), 21U + 3U) << "images, results and the page";

  const auto out = in_folder("killed");
  for (const std::int64_t lines : {2, 9, 17}) {  // the first line belongs to no file
    const auto child = start(MILLRACE_TRAINER, into(out));
    wait_until([&] { return lines_in(out / "predict.part") >= lines; });
    ::kill(child, SIGKILL);
    EXPECT_EQ(finish(child).exit_code, -1);
    EXPECT_FALSE(fs::exists(out / "detections.json"));
    // Imitates a kill in the middle of a write.
    write_text(out / "predict.part", read_text(out / "predict.part") + "{\"file\":\"/ph");
    write_text(out / "detections.json.part", read_text(out / "detections.json.part") + ",\n{\"im");
  }
  const auto end = trainer(into(out));
  EXPECT_THAT(end.err, HasSubstr("resuming"));
  EXPECT_THAT(end.err, HasSubstr("3 of 24 images")) << "including images from before the kills";
  EXPECT_EQ(all_in(out), expected);
  // After a finished prediction there is nothing to resume.
  EXPECT_THAT(trainer(into(out)).err, Not(HasSubstr("resuming")));
  EXPECT_EQ(all_in(out), expected);
}

TEST_F(Predict, WritesPageWithCounts) {
  const auto weights = model(), folder = photos(12), out = in_folder("out");
  // All detections, whatever their scores.
  const auto done = trainer({"predict", weights, folder, "--out", out, "--score", "0.2", "--set",
                             "model.test.score_thresh=0"});
  EXPECT_THAT(done.err, HasSubstr("2 of 12 images"));
  const auto shown = page_json(read_text(out / "index.html"))["photos"];
  std::map<std::int64_t, int> objects;
  for (const auto& one : read_json(out / "detections.json"))
    if (one["score"] >= 0.2) ++objects[one["category_id"].get<std::int64_t>()];
  int all = 0;
  std::map<std::string, int> counts;
  for (const auto& one : shown["classes"]) counts[one["name"]] = one["objects"];
  const auto images = read_json(out / "images.json");
  for (const auto& category : images["categories"]) {
    const auto count = objects[category["id"].get<std::int64_t>()];
    all += count;
    EXPECT_EQ(counts[category["name"]], count);
  }
  EXPECT_EQ(shown["objects"], all);
  EXPECT_EQ(shown["count"], 10);
  EXPECT_EQ(shown["failed"]["count"], 2);
  EXPECT_EQ(shown["pictures"]["images"].size(), 10U);
}

TEST_F(Predict, MatchesEvalWithAnnotationIds) {
  const auto weights = model(), out = in_folder("out");
  edit(val_annotations_, [](Json& json) {  // ids in a different order from names
    for (auto& image : json["images"]) image["id"] = 1000 - image["id"].get<int>();
    for (auto& one : json["annotations"]) one["image_id"] = 1000 - one["image_id"].get<int>();
  });
  // An image that is rotated by EXIF data, unlike its annotations.
  const auto turned_image = read_json(val_annotations_)["images"][0];
  const auto turned_file = data_ / "val2017" / turned_image["file_name"].get<std::string>();
  write_text(turned_file, with_orientation(read_text(turned_file), 3));
  const Words all = {"--set", "model.test.score_thresh=0"};
  successful(trainer(
      Words{"predict", weights, data_ / "val2017", "--out", out, "--gt", val_annotations_} + all));
  const auto score = [&](const fs::path& found) {
    return trainer(
        {"coco-eval", "--gt", val_annotations_, "--dt", found, "--iou", "bbox", "--json"});
  };
  successful(
      trainer(Words{"eval", weights, "--data", data_, "--out", in_folder("found.json")} + all));
  EXPECT_EQ(successful(score(out / "detections.json")).json().at("stats"),
            successful(score(in_folder("found.json"))).json().at("stats"));
  const auto of_turned = [&](const fs::path& found) {
    auto some = Json::array();
    for (const auto& one : read_json(found))
      if (one["image_id"] == turned_image["id"]) some.push_back(one);
    return some;
  };
  EXPECT_EQ(of_turned(out / "detections.json"), of_turned(in_folder("found.json")));
  std::map<std::string, Json> names;
  const auto annotations = read_json(val_annotations_);
  for (const auto& image : annotations.at("images")) names[image["file_name"]] = image["id"];
  const auto images = read_json(out / "images.json").at("images");
  EXPECT_EQ(images.size(), names.size());
  for (const auto& image : images)
    EXPECT_EQ(image["id"], names.at(fs::path(image["file_name"].get<std::string>()).filename()));

  const auto shown = page_json(read_text(out / "index.html"))["photos"]["pictures"]["images"];
  std::size_t annotated = 0;
  for (const auto& image : shown) annotated += image["truth"].size();
  EXPECT_EQ(annotated, annotations.at("annotations").size());

  // Without --gt, image ids are 1, 2, ..., which these annotations lack.
  successful(trainer(Words{"predict", weights, data_ / "val2017", "--out", out} + all));
  expect_error(score(out / "detections.json"), 1, "detections.json");
}

TEST_F(Predict, RejectsPhotosWithoutAnnotations) {
  const auto weights = model();
  const auto refused = trainer(
      {"predict", weights, first_image(), "--out", in_folder("out"), "--gt", val_annotations_});
  expect_error(refused, 1, first_image().filename());
}

TEST_F(Predict, LimitsDrawnObjectsAndCountsAll) {
  const auto weights = model(), out = in_folder("out");
  successful(trainer({"predict", weights, first_image(), "--out", out, "--score", "0", "--set",
                      "model.test.score_thresh=0", "--set", "model.test.nms_thresh=1", "--set",
                      "model.test.detections_per_img=700"}));
  const auto count = read_json(out / "detections.json").size();
  ASSERT_GT(count, 510U);
  const auto image = page_json(read_text(out / "index.html"))["photos"]["pictures"]["images"][0];
  EXPECT_EQ(image["figures"]["objects"], count);
  EXPECT_EQ(image["found"].size(), 500U);
  EXPECT_THAT(image["note"], HasSubstr("500 of " + std::to_string(count)));
}

TEST_F(Predict, AppliesDecodingOptions) {
  const auto weights = model();
  const auto photo = photos(1) / "0100.jpg";
  const auto bytes = read_text(photo);
  fs::remove(photo);  // it is a link
  write_text(photo, bytes.substr(0, bytes.size() * 3 / 4));
  const auto predict = [&](const std::string& set) {
    return trainer({"predict", weights, photo, "--out", in_folder("found"), "--set", set});
  };
  EXPECT_NE(predict("data.strict_decoding=true").exit_code, 0);
  EXPECT_EQ(predict("data.strict_decoding=false").exit_code, 0);
  write_text(photo, bytes);
  EXPECT_EQ(predict("data.max_pixels=0").exit_code, 0);
  const auto bomb = predict("data.max_pixels=100");
  EXPECT_NE(bomb.exit_code, 0);
  EXPECT_THAT(bomb.err, AllOf(HasSubstr("0100.jpg"), HasSubstr("data.max_pixels")));
}

TEST_F(Predict, StartsOverIfPhotosChange) {
  const auto weights = model(), folder = photos(12), out = in_folder("out");
  const Words command = {"predict", weights, folder, "--out", out};
  const auto child = start(MILLRACE_TRAINER, command);
  wait_until([&] { return lines_in(out / "predict.part") >= 3; });
  ::kill(child, SIGKILL);
  finish(child);
  fs::remove(folder / "0103.jpg");
  fs::remove(folder / "0110.jpg");
  const auto again = successful(trainer(command));
  EXPECT_THAT(again.err, HasSubstr((out / "predict.part").string()));
  EXPECT_EQ(read_json(out / "images.json").at("images").size(), 10U);
  EXPECT_EQ(std::ranges::count(again.out, '\n'), 10);
}

TEST_F(Predict, ResumesBatchesToSameBytes) {
  const auto weights = model(), folder = photos(12);
  const Words batches = {"--set", "data.test_batch_size=4"};
  trainer(Words{"predict", weights, folder, "--out", in_folder("a")} + batches);
  const auto expected = all_in(in_folder("a"));
  ASSERT_EQ(read_json(in_folder("a") / "images.json").at("images").size(), 10U);
  const auto out = in_folder("b");
  const Words command = Words{"predict", weights, folder, "--out", out} + batches;
  const auto child = start(MILLRACE_TRAINER, command);
  wait_until([&] { return lines_in(out / "predict.part") >= 4; });
  ::kill(child, SIGKILL);
  finish(child);
  trainer(command);
  EXPECT_EQ(all_in(out), expected);
}

TEST_F(Predict, DetectsSameInVideosAsInPhotos) {
  const auto weights = model(), out = in_folder("out"), video = in_folder("street.mp4");
  const std::vector<std::int64_t> times = {0, 3000, 7500, 90000, 90001};
  write_video(video, 128, 96, times);
  // All detections, whatever their scores.
  const Words all = {"--set", "model.test.score_thresh=0", "--out", out};
  const auto done = successful(trainer(Words{"predict", weights, video} + all));
  EXPECT_THAT(done.out, HasSubstr("street.mp4: 5 frames"));
  EXPECT_EQ(all_in(out).size(), 3U) << "no files for photos";
  const auto page = page_json(read_text(out / "index.html"));
  EXPECT_EQ(page["photos"], nullptr);
  EXPECT_EQ(page["videos"][0]["name"], "street");
  EXPECT_EQ(page["videos"][0]["frames"], 5);

  std::istringstream lines(read_text(out / "street.jsonl"));
  std::string line;
  std::getline(lines, line);
  const auto head = Json::parse(line);
  EXPECT_EQ(head.at("width"), 128);
  EXPECT_EQ(head.at("categories").size(), 6U);
  std::vector<Json> frames;
  while (std::getline(lines, line)) frames.push_back(Json::parse(line));
  ASSERT_EQ(frames.size(), times.size());
  for (std::size_t k = 0; k < times.size(); ++k) {
    EXPECT_EQ(frames[k].at("frame"), k);
    EXPECT_NEAR(frames[k].at("time").get<double>(), static_cast<double>(times[k]) / 90000, 1e-9);
  }

  // The annotated video has the same times, and each frame has the same detections as a photo of
  // it.
  const auto shown = video_files().open((out / "street.mp4").string());
  Pixels pixels(static_cast<std::size_t>(shown->facts().width * shown->facts().height * 3));
  for (const auto time : times) EXPECT_EQ(shown->read(pixels.data()), time);
  const auto again = video_files().open(video.string());
  pixels.resize(128 * 96 * 3);
  again->read(pixels.data());
  again->read(pixels.data());
  const auto photo = in_folder("frame.tif");
  write_text(photo,
             tiff_of({reinterpret_cast<const char*>(pixels.data()), pixels.size()}, 128, 96));
  successful(trainer(Words{"predict", weights, photo} + all));
  auto found = read_json(out / "detections.json");
  ASSERT_FALSE(found.empty());
  for (auto& one : found) one["image_id"] = 1;  // the number of the frame
  EXPECT_EQ(found, frames[1].at("detections"));
}

TEST_F(Predict, ContinuesAfterUnusableVideos) {
  const auto weights = model(), out = in_folder("out");
  write_text(in_folder("none.mp4"), "no video");
  write_text(in_folder("empty.avi"), "");
  write_video(in_folder("good.mp4"), 64, 48, even_times(2));
  const auto done = trainer({"predict", weights, in_folder("none.mp4"), in_folder("empty.avi"),
                             in_folder("good.mp4"), "--out", out});
  EXPECT_EQ(done.exit_code, 1);
  EXPECT_THAT(done.err,
              AllOf(HasSubstr("none.mp4: "), HasSubstr("empty.avi: "), HasSubstr("2 of 3 videos")));
  EXPECT_EQ(all_in(out).size(), 3U) << "only good.mp4, good.jsonl and the page";
  EXPECT_TRUE(fs::exists(out / "good.jsonl"));
  expect_error(trainer({"predict", weights, in_folder("good.mp4"), "--out", in_folder("")}), 1,
               "1 of 1 video");
  EXPECT_FALSE(read_text(in_folder("good.mp4")).empty()) << "the output would replace the input";
}

TEST_F(Predict, ReportsMissingFfmpegForVideos) {
  const auto weights = model();
  const fs::path programs = fs::path(MILLRACE_TRAINER).parent_path();
  fs::create_directories(in_folder("bin"));
  fs::create_directories(in_folder("lib") / "millrace");
  for (const auto* name : {"trainer", "trainer-torch"})
    fs::copy_file(programs / name, in_folder("bin") / name);
  write_video(in_folder("good.mp4"), 64, 48, even_times(2));
  const auto moved = in_folder("bin") / "trainer";
  const auto done =
      run(moved, {"predict", weights, in_folder("good.mp4"), "--out", in_folder("out")});
  EXPECT_EQ(done.exit_code, 1);
  EXPECT_THAT(done.err, AllOf(HasSubstr("lib/millrace/video_files.so"), HasSubstr("libavformat")));
  successful(run(moved, {"predict", weights, data_ / "val2017", "--out", in_folder("out")}));
}

}  // namespace
}  // namespace millrace::testing
