// The page of a prediction: photos with what was found, counts of each class, videos.
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

/// OUT/index.html. Equal results give equal bytes.
class ResultsPage {
 public:
  static constexpr std::size_t kMostPhotos = 200;       // shown; of more, some at equal distances
  static constexpr std::size_t kMostBytes = 5'000'000;  // of the page: fewer photos fit then

  explicit ResultsPage(const Prediction& prediction) : prediction_(prediction) {}

  /// Counts all that was found in photos and decodes those that are shown. Memory does not grow
  /// with their number. REQUIRES: `results` are saved, not finished.
  void add_photos(const PhotoResults& results);
  void add_video(const VideoResult& video);

  /// Writes the page. Throws Error.
  void write() const;

 private:
  struct Count {
    std::int64_t objects = 0, photos = 0;  // that score enough to be drawn
  };

  /// `scores`: of all that the page can show, the best first.
  report::Picture picture(const PhotoResult& photo, std::vector<report::Shape> shapes,
                          const std::vector<double>& scores) const;
  /// What the annotations have of a photo; none without annotations.
  std::vector<report::Shape> annotated(const PhotoResult& photo) const;
  /// The page with some of the pictures.
  std::string page(const std::vector<report::Picture>& shown) const;
  nlohmann::ordered_json photos_json(const std::vector<report::Picture>& shown) const;
  nlohmann::ordered_json videos_json() const;

  const Prediction& prediction_;
  std::vector<Count> counts_;  // by class
  std::int64_t photos_ = 0, objects_ = 0, empty_ = 0;
  std::vector<std::string> failed_;
  std::int64_t failed_count_ = 0;
  std::vector<report::Picture> pictures_;
  std::vector<VideoResult> videos_;
};

}  // namespace millrace::cli
