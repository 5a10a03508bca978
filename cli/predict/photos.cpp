#include "millrace/cli/predict/photos.h"

#include <fmt/format.h>

#include <utility>

#include "millrace/base/digest.h"
#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/log.h"
#include "millrace/base/text.h"
#include "millrace/cli/command.h"
#include "millrace/dataflow/detection_flows.h"
#include "millrace/models/weights/formats.h"
#include "millrace/trainer/evaluation/evaluation.h"
#include "millrace/trainer/run/device.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

/// Returns a digest of everything that the results of these files depend on.
std::uint64_t digest_of(const Prediction& prediction, const std::vector<fs::path>& files,
                        const std::vector<std::int64_t>& ids) {
  const auto bytes = map_file(weight_file(prediction.weights));
  auto result = digest(bytes.data.get(), bytes.size);
  result = digest(to_toml(prediction.session.recipe().tree) + MILLRACE_VERSION, result);
  result = digest(prediction.score, result);
  result = digest(prediction.split.category_ids, digest(ids, result));
  for (const auto& file : files) {
    std::error_code unreadable;  // reported when the file is read
    result = digest(fs::absolute(file).string(), result);
    result = digest(static_cast<std::uint64_t>(fs::file_size(file, unreadable)), result);
    result = digest(
        static_cast<std::int64_t>(fs::last_write_time(file, unreadable).time_since_epoch().count()),
        result);
  }
  return result;
}

/// Returns the sizes that the annotations give for photos with these ids.
std::vector<cv::Size> annotated_sizes(const coco::Dataset& truth,
                                      const std::vector<std::int64_t>& ids) {
  std::vector<cv::Size> sizes;
  for (const auto id : ids) {
    const auto* image = truth.find_image(id);
    sizes.emplace_back(image ? cv::Size(image->width, image->height) : cv::Size());
  }
  return sizes;
}

/// Detects objects in batches of files, writes a picture of each file and prints a line about it. A
/// file that fails does not stop the others.
class PhotoPrediction {
 public:
  PhotoPrediction(const Prediction& prediction, const Photos& photos,
                  const std::vector<std::int64_t>& ids, PhotoResults& results)
      : prediction_(prediction),
        photos_(photos),
        ids_(ids),
        results_(results),
        progress_("image", results.count(), photos.size()) {}

  void detect_in(const Batch& batch) {
    std::vector<std::vector<DetectedObject>> found;
    std::string fault;
    try {
      found = prediction_.detector.detect(batch);
    } catch (const Error& problem) {
      fault = problem.what();
    }
    for (std::size_t i = 0; i < batch.size(); ++i) {
      add_unusable(batch.images[i].image_id);
      if (fault.empty())
        add(found[i]);
      else
        fail(fault);
    }
    results_.save();
    progress_.show(results_.count());
  }

  /// Adds the files before position `end` that were in no batch, because they could not be read.
  void add_unusable(std::int64_t end) {
    while (results_.count() < end) fail("cannot be read");
  }

 private:
  const fs::path& file() const { return photos_.file(results_.count()); }

  /// Returns the result of the next file without its detections.
  PhotoResult begun() {
    const auto photo = photos_.take(results_.count());
    PhotoResult result{
        .file = fs::absolute(file()), .width = photo.size.width, .height = photo.size.height};
    if (result.width > 0)
      result.id =
          ids_.empty() ? results_.pictures() + 1 : ids_[static_cast<std::size_t>(results_.count())];
    if (!photo.fault.empty()) result.fault = photo.fault;
    return result;
  }

  /// Adds the next file without detections. `why`: the error, unless loading the photo already
  /// failed.
  void fail(const std::string& why) {
    auto result = begun();
    if (result.fault.empty()) result.fault = fmt::format("{}: {}", result.file.string(), why);
    log_warning("failed: {}", result.fault);
    results_.add(result, {});
  }

  void add(const std::vector<DetectedObject>& objects) {
    auto result = begun();
    const auto found = prediction_.detections(objects, result.id);
    try {
      draw(result, objects);
    } catch (const std::exception& problem) {  // including OpenCV's exceptions
      result.fault = fmt::format("{}: {}", result.file.string(), problem.what());
      log_warning("failed: {}", result.fault);
    }
    results_.add(result, found);
  }

  void draw(PhotoResult& result, const std::vector<DetectedObject>& objects) {
    std::map<std::string, int> counts;
    const auto shown = prediction_.overlays(objects, &counts);
    const auto photo = photos_.read(results_.count());
    if (photo.width != result.width || photo.height != result.height)
      throw Error("has changed since it was read");
    const auto picture = results_.picture_of(result.file);
    if (std::error_code none; fs::equivalent(picture, result.file, none))
      throw Error("its picture would overwrite it; choose another --out");
    result.is_drawn = true;
    coco::write_picture(picture,
                        coco::draw_objects(photo.image.pixels(), shown, prediction_.split.classes));
    if (progress_.owns_terminal()) return;
    print_formatted("{}: {}\n", picture.string(), counts_text(counts));
  }

  const Prediction& prediction_;
  const Photos& photos_;
  const std::vector<std::int64_t>& ids_;
  PhotoResults& results_;
  PredictionProgress progress_;
};

}  // namespace

FailedPhotos predict_photos(const Prediction& prediction, const std::vector<fs::path>& files,
                            const std::vector<std::int64_t>& ids, ResultsPage& page) {
  const auto& session = prediction.session;
  const auto& data = session.recipe().data;
  PhotoResults results(prediction.out, digest_of(prediction, files, ids), data.test_batch_size);
  auto [photos, batches] = start_photo_flow(data, files, {.next = results.count(), .pending = {}},
                                            annotated_sizes(*prediction.split.annotations, ids));
  PhotoPrediction pass(prediction, *photos, ids, results);
  if (results.count() < photos->size())
    go_through(upload_ahead(std::move(batches), session.device()), {}, [&](const Batch& batch) {
      pass.detect_in(batch);
      return true;
    });
  pass.add_unusable(photos->size());
  results.save();
  page.add_photos(results);
  page.write();
  results.finish(*prediction.split.annotations);
  return results.failed();
}

}  // namespace millrace::cli
