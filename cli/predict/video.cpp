#include "millrace/cli/predict/video.h"

#include <fmt/format.h>

#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/text.h"
#include "millrace/cli/command.h"
#include "millrace/dataflow/detection_flows.h"
#include "millrace/tools/video/open_video.h"
#include "millrace/trainer/appended_file.h"
#include "millrace/trainer/evaluation/evaluation.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

struct Frame {
  std::int64_t number = 0, time = 0;  // number from 0; time in ticks of the video's clock
  cv::Mat pixels;
  Batch batch;  // the detector's input
};

/// Calls `work`; exceptions of the video libraries become an Error that names the file.
template <class Work>
auto naming(const fs::path& file, Work work) try {
  return work();
} catch (const Error&) {
  throw;
} catch (const std::runtime_error& problem) {
  throw Error(fmt::format("{}: {}", file.string(), problem.what()));
}

/// Reads and prepares the next frame while the model processes the current one.
class FrameReader {
 public:
  FrameReader(const fs::path& file, const DataOptions& data)
      : file_(file), data_(data), reader_(naming(file, [&] {
          check_readable(file);
          return video_files().open(file.string());
        })) {
    read_ahead();
  }

  const VideoFacts& facts() const { return reader_->facts(); }
  std::string fault() const { return reader_->fault(); }

  std::optional<Frame> next() {
    auto frame = next_.get();
    if (frame) read_ahead();
    return frame;
  }

 private:
  static void check_readable(const fs::path& file) {
    if (InputFile(file).size() == 0) throw Error(fmt::format("{}: is empty", file.string()));
  }

  void read_ahead() {
    next_ =
        std::async(std::launch::async, [this] { return naming(file_, [&] { return read(); }); });
  }

  std::optional<Frame> read() {
    Frame frame{.number = count_++, .pixels = {facts().height, facts().width, CV_8UC3}};
    const auto time = reader_->read(frame.pixels.data);
    if (!time) return std::nullopt;
    frame.time = *time;
    Sample sample{.image_id = frame.number,
                  .path = fmt::format("{}, frame {}", file_.string(), frame.number),
                  .width = facts().width,
                  .height = facts().height,
                  .image = {frame.pixels}};
    frame.batch = test_batch(data_, std::move(sample));
    return frame;
  }

  const fs::path file_;
  const DataOptions& data_;
  const std::unique_ptr<VideoReader> reader_;
  std::int64_t count_ = 0;
  std::future<std::optional<Frame>> next_;  // destroyed first: waits for the thread
};

/// An output file that appears only when it is complete.
class PartFile {
 public:
  explicit PartFile(fs::path file) : file_(std::move(file)), part_(file_.string() + ".part") {
    fs::remove(part_);
  }
  ~PartFile() {
    std::error_code none;
    fs::remove(part_, none);
  }
  PartFile(const PartFile&) = delete;

  const fs::path& file() const { return file_; }
  const fs::path& part() const { return part_; }
  void publish() {
    sync_path(part_);
    fs::rename(part_, file_);
  }

 private:
  const fs::path file_, part_;
};

/// The annotated video, created with its first frame, which gives its size.
class Pictures {
 public:
  Pictures(const fs::path& file, VideoClock clock) : file_(file), clock_(clock) {}

  void add(const cv::Mat& picture, std::int64_t time) {
    naming(file_.file(), [&] {
      if (!writer_)
        writer_ = video_files().create(file_.part().string(), picture.cols, picture.rows, clock_);
      writer_->write((picture.isContinuous() ? picture : picture.clone()).data, time);
    });
  }

  void publish() {
    naming(file_.file(), [&] { writer_->finish(); });
    file_.publish();
  }

 private:
  PartFile file_;
  const VideoClock clock_;
  std::unique_ptr<VideoWriter> writer_;
};

std::string head_line(const fs::path& video, const VideoFacts& facts,
                      const coco::Dataset& categories) {
  auto names = Json::array();
  for (const auto& category : categories.categories)
    names.push_back({{"id", category.id}, {"name", categories.text(category.name)}});
  return json_text({{"video", fs::absolute(video).string()},
                    {"width", facts.width},
                    {"height", facts.height},
                    {"categories", names}}) +
         "\n";
}

std::string frame_line(const Frame& frame, VideoClock clock, const coco::Detections& found) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < found.size(); ++i) texts.push_back(result_text(found, i));
  const auto seconds = static_cast<double>(frame.time) * clock.numerator / clock.denominator;
  return fmt::format("{{\"frame\":{},\"time\":{},\"detections\":[{}]}}\n", frame.number, seconds,
                     joined(texts, ","));
}

}  // namespace

VideoResult predict_video(const Prediction& prediction, const fs::path& video,
                          const std::string& name) {
  const auto& split = prediction.split;
  const auto shown_as = prediction.out / (name + ".mp4");
  if (std::error_code none; fs::equivalent(shown_as, video, none))
    throw Error(fmt::format("{}: the annotated video would overwrite it; choose another --out",
                            video.string()));
  FrameReader frames(video, prediction.session.recipe().data);
  const auto clock = frames.facts().clock;
  Pictures pictures(shown_as, clock);
  PartFile results(prediction.out / (name + ".jsonl"));
  append_to(results.part(), head_line(video, frames.facts(), *split.annotations));
  PredictionProgress progress("frame", 0, frames.facts().frames);
  VideoResult result{.name = name};
  while (const auto frame = frames.next()) {
    const auto objects =
        naming(video, [&] { return std::move(prediction.detector.detect(frame->batch).front()); });
    append_to(results.part(),
              frame_line(*frame, clock, prediction.detections(objects, frame->number)));
    pictures.add(coco::draw_objects(frame->pixels, prediction.overlays(objects, &result.counts),
                                    split.classes),
                 frame->time);
    progress.show(++result.frames);
  }
  if (result.frames == 0)
    throw Error(fmt::format("{}: {}", video.string(),
                            frames.fault().empty() ? "has no frames" : frames.fault()));
  pictures.publish();
  results.publish();
  if (!progress.owns_terminal())
    print_formatted("{}: {}: {}\n", shown_as.string(), counted(result.frames, "frame"),
                    counts_text(result.counts));
  if (!frames.fault().empty()) result.fault = fmt::format("{}: {}", video.string(), frames.fault());
  return result;
}

}  // namespace millrace::cli
