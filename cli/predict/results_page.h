// The HTML page of a prediction: photos with detections, counts per class, videos.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "millrace/cli/predict/photo_results.h"
#include "millrace/cli/predict/prediction.h"
#include "millrace/cli/predict/video.h"
#include "millrace/tools/report/gallery.h"

namespace millrace::cli {

/// The page OUT/index.html. Equal results give equal bytes.
class ResultsPage {
 public:
  static constexpr std::size_t kMostPhotos = 200;       // maximum shown; evenly spaced
  static constexpr std::size_t kMostBytes = 5'000'000;  // fewer photos are shown if exceeded

  explicit ResultsPage(const Prediction& prediction) : prediction_(prediction) {}

  /// Counts the objects detected in photos and decodes the photos to be shown. Memory use does not
  /// grow with their number. REQUIRES: `results` are saved and not finished.
  void add_photos(const PhotoResults& results);
  void add_video(const VideoResult& video);

  /// Writes the page. Throws Error.
  void write() const;

 private:
  struct Count {
    std::int64_t objects = 0, photos = 0;  // with at least the score to be drawn
  };

  /// `scores`: of all detections that the page can show, highest first.
  report::Picture picture(const PhotoResult& photo, std::vector<report::Shape> shapes,
                          const std::vector<double>& scores) const;
  /// Returns the annotated objects of a photo; empty without annotations.
  std::vector<report::Shape> annotated(const PhotoResult& photo) const;
  /// Returns the page's HTML with only these pictures.
  std::string page(const std::vector<report::Picture>& shown) const;
  nlohmann::ordered_json photos_json(const std::vector<report::Picture>& shown) const;
  nlohmann::ordered_json videos_json() const;

  const Prediction& prediction_;
  std::vector<Count> counts_;  // per class
  std::int64_t photos_ = 0, objects_ = 0, empty_ = 0;
  std::vector<std::string> failed_;
  std::int64_t failed_count_ = 0;
  std::vector<report::Picture> pictures_;
  std::vector<VideoResult> videos_;
};

}  // namespace millrace::cli
