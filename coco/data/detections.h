// What a detector found in images: flat arrays, masks as COCO's compressed counts.
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

/// x y width height, pixels.
using Xywh = std::array<double, 4>;

/// One detection as a detector hands it over: one or more of a box, a mask and keypoints.
struct Detection {
  std::int64_t image_id = 0;
  std::int64_t category_id = 0;
  std::optional<Xywh> bbox;
  double score = 0;
  Rle mask;                       // empty counts: none
  std::vector<double> keypoints;  // x y v of each, pixels; empty: none
};

/// Detections in the order in which they were added. Const, any thread may read.
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
    std::uint32_t keypoints = kNoKeypoints;  // position among the sets of keypoints
  };

  struct Mask {
    std::uint64_t first = 0;  // byte where its counts begin
    std::uint32_t bytes = 0;  // length of its counts
    MaskExtent extent;
  };

  Detections() = default;
  explicit Detections(std::span<const Detection> all);
  /// Those with a box alone.
  explicit Detections(std::vector<Record> boxes) : records_(std::move(boxes)) {}

  std::size_t size() const { return records_.size(); }
  bool empty() const { return records_.empty(); }
  const Record& operator[](std::size_t i) const { return records_[i]; }

  /// The mask of a record that has one.
  const Mask& mask_of(const Record& one) const { return masks_[one.mask]; }
  std::string_view counts(const Mask& mask) const {
    return std::string_view(counts_.data() + mask.first, mask.bytes);
  }
  /// The mask of detection `i`, decoded; no counts if it has none.
  Rle mask(std::size_t i) const;
  /// The same for one that has a mask, into memory that is reused.
  void decode(std::size_t i, Rle& runs) const;

  /// x y v of each keypoint of a record; empty if it has none.
  std::span<const double> keypoints_of(const Record& one) const {
    if (one.keypoints == kNoKeypoints) return {};
    const std::uint64_t begin = one.keypoints == 0 ? 0 : keypoint_ends_[one.keypoints - 1];
    return std::span(keypoints_).subspan(begin, keypoint_ends_[one.keypoints] - begin);
  }

  /// Appends others, in their order; the first call reserves room for about `times` as many.
  void append(const Detections& others, std::size_t times = 1);
  /// All of them for `append_partial` on machines of the same byte order.
  std::string partial() const;
  /// Appends what `partial` gave. Throws Error if it is broken, and then appends nothing.
  void append_partial(std::string_view partial);
  /// Sorts by the image's id; those of an image stay in their order.
  void sort_by_image();
  /// Keeps the memory.
  void clear();
  /// Throws Error for one with neither box nor mask nor keypoints, or keypoints that are not x y v.
  void add(const Detection& one);
  /// One without a mask, with keypoints x y v or none.
  void add(const Record& one, std::span<const double> keypoints = {});
  /// One with a mask as compressed counts. Throws Error as `decode_counts`, and then adds nothing.
  void add(Record one, std::string_view counts, std::uint32_t height, std::uint32_t width,
           std::span<const double> keypoints = {});

 private:
  std::vector<Record> records_;
  std::vector<Mask> masks_;
  std::vector<char> counts_;
  std::vector<double> keypoints_;
  std::vector<std::uint64_t> keypoint_ends_;  // of each set; it begins at the last one's
};

/// Reads a results file: an array of detections, each with a box, a mask or keypoints. Polygons,
/// which pycocotools takes beside boxes, become masks of their image's size in `images`; without
/// `images`, or for an unknown image, they are an error. Throws Error as `read_dataset`.
Detections read_detections(const std::filesystem::path& json, const Dataset* images = nullptr);

/// One detection as a results file has it, `{"image_id":1,...}`: numbers so that reading gives the
/// same values back. Throws Error for values that JSON does not have.
std::string result_text(const Detections& detections, std::size_t i);

/// Writes a results file, atomically: numbers so that reading gives the same values back.
void write_detections(const std::filesystem::path& json, const Detections& detections);

}  // namespace millrace::coco
