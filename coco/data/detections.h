// The detections of a data set in flat arrays, with masks as COCO's compressed counts.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "millrace/coco/data/annotations.h"
#include "millrace/coco/masks/masks.h"

namespace millrace::coco {

/// x, y, width, height in pixels.
using Xywh = std::array<double, 4>;

/// One detection with at least one of box, mask and keypoints.
struct Detection {
  std::int64_t image_id = 0;
  std::int64_t category_id = 0;
  std::optional<Xywh> bbox;
  double score = 0;
  Rle mask;                       // empty counts = none
  std::vector<double> keypoints;  // x, y, v per keypoint in pixels; empty = none
};

/// Detections in the order in which they were added. Const access is thread-safe.
class Detections {
 public:
  static constexpr std::uint32_t kNoMask = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint32_t kNoKeypoints = kNoMask;

  struct Record {
    std::int64_t image_id = 0;
    std::int64_t category_id = 0;
    Xywh bbox{};
    double score = 0;
    double area = 0;               // pixels, for AreaFrom::given
    std::uint32_t mask = kNoMask;  // position among the masks
    bool has_bbox = false;
    std::uint32_t keypoints = kNoKeypoints;  // position among the keypoint sets
  };

  struct Mask {
    std::uint64_t first = 0;  // position of the first byte of its counts
    std::uint32_t bytes = 0;  // number of bytes of its counts
    MaskExtent extent;
  };

  Detections() = default;
  explicit Detections(std::span<const Detection> all);
  /// Detections with only boxes.
  explicit Detections(std::vector<Record> boxes) : records_(std::move(boxes)) {}

  std::size_t size() const { return records_.size(); }
  bool empty() const { return records_.empty(); }
  const Record& operator[](std::size_t i) const { return records_[i]; }

  /// Returns the mask of a record. REQUIRES: the record has one.
  const Mask& mask_of(const Record& one) const { return masks_[one.mask]; }
  std::string_view counts(const Mask& mask) const {
    return std::string_view(counts_.data() + mask.first, mask.bytes);
  }
  /// Returns the decoded mask of detection `i`; empty counts if it has none.
  Rle mask(std::size_t i) const;
  /// Decodes the mask of detection `i` into reused memory. REQUIRES: the detection has a mask.
  void decode(std::size_t i, Rle& runs) const;

  /// Returns x, y, v of each keypoint of a record; empty if it has none.
  std::span<const double> keypoints_of(const Record& one) const {
    if (one.keypoints == kNoKeypoints) return {};
    const std::uint64_t begin = one.keypoints == 0 ? 0 : keypoint_ends_[one.keypoints - 1];
    return std::span(keypoints_).subspan(begin, keypoint_ends_[one.keypoints] - begin);
  }

  /// Appends detections in their order. The first call reserves memory for about `times` such
  /// appends.
  void append(const Detections& others, std::size_t times = 1);
  /// Returns all detections as bytes for `append_partial` on machines of the same byte order.
  std::string partial() const;
  /// Appends the detections of `partial`. Throws Error and appends nothing if the bytes are
  /// invalid.
  void append_partial(std::string_view partial);
  /// Sorts by image id, keeping the order within an image.
  void sort_by_image();
  /// Removes all detections but keeps the memory.
  void clear();
  /// Adds a detection. Throws Error if it has no box, mask or keypoints, or if keypoints are not
  /// triples.
  void add(const Detection& one);
  /// Adds a detection without a mask, with keypoints x, y, v or none.
  void add(const Record& one, std::span<const double> keypoints = {});
  /// Adds a detection with a mask as compressed counts. Throws Error like `decode_counts` and then
  /// adds nothing.
  void add(Record one, std::string_view counts, std::uint32_t height, std::uint32_t width,
           std::span<const double> keypoints = {});

 private:
  std::vector<Record> records_;
  std::vector<Mask> masks_;
  std::vector<char> counts_;
  std::vector<double> keypoints_;
  // End of each keypoint set; it begins at the previous end.
  std::vector<std::uint64_t> keypoint_ends_;
};

/// Reads a results file: an array of detections, each with a box, a mask or keypoints. Polygons,
/// which pycocotools also accepts, are converted to masks with the size of their image in `images`;
/// without `images`, or for an unknown image, they are an error. Throws Error like `read_dataset`.
Detections read_detections(const std::filesystem::path& json, const Dataset* images = nullptr);

/// Returns one detection as in a results file, `{"image_id":1,...}`. Numbers read back bitwise
/// equal. Throws Error for values that JSON cannot represent.
std::string result_text(const Detections& detections, std::size_t i);

/// Writes a results file atomically. Numbers read back bitwise equal.
void write_detections(const std::filesystem::path& json, const Detections& detections);

/// Throws Error naming `file` if most detections have an image id that the data set lacks, or if
/// the detections of most images cannot belong to them: masks of another size, or boxes with their
/// centre outside the image.
void require_fit(const Detections& found, const Dataset& truth, const std::string& file);

}  // namespace millrace::coco
