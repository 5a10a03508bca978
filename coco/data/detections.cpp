#include "millrace/coco/data/detections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "millrace/base/errors.h"

namespace millrace::coco {
namespace {

constexpr const char* kBroken = "detections: damaged partial result";

template <class T>
void put(std::string& bytes, const std::vector<T>& values) {
  const std::uint64_t count = values.size();
  bytes.append(reinterpret_cast<const char*>(&count), sizeof count);
  bytes.append(reinterpret_cast<const char*>(values.data()), count * sizeof(T));
}

/// Removes from the front of `bytes` an array that `put` appended.
template <class T>
std::vector<T> take(std::string_view& bytes) {
  std::uint64_t count = 0;
  if (bytes.size() < sizeof count) throw Error(kBroken);
  std::memcpy(&count, bytes.data(), sizeof count);
  bytes.remove_prefix(sizeof count);
  if (count > bytes.size() / sizeof(T)) throw Error(kBroken);
  std::vector<T> values(count);
  if (count > 0) std::memcpy(values.data(), bytes.data(), count * sizeof(T));
  bytes.remove_prefix(count * sizeof(T));
  return values;
}

}  // namespace

Detections::Detections(std::span<const Detection> all) {
  records_.reserve(all.size());
  for (const Detection& one : all) add(one);
}

Rle Detections::mask(std::size_t i) const {
  Rle runs;
  if (records_[i].mask != kNoMask) decode(i, runs);
  return runs;
}

void Detections::decode(std::size_t i, Rle& runs) const {
  const Mask& mask = mask_of(records_[i]);
  decode_counts(counts(mask), mask.extent.height, mask.extent.width, runs);
}

void Detections::clear() {
  records_.clear();
  masks_.clear();
  counts_.clear();
  keypoints_.clear();
  keypoint_ends_.clear();
}

void Detections::append(const Detections& others, std::size_t times) {
  const auto first_mask = static_cast<std::uint32_t>(masks_.size());
  const std::uint64_t first_byte = counts_.size(), first_keypoint = keypoints_.size();
  const auto first_set = static_cast<std::uint32_t>(keypoint_ends_.size());
  const auto append = [times](auto& to, const auto& from) {
    if (to.empty()) to.reserve(from.size() * (times + 1) / 8 * 9);
    to.insert(to.end(), from.begin(), from.end());
  };
  append(records_, others.records_);
  append(masks_, others.masks_);
  append(counts_, others.counts_);
  append(keypoints_, others.keypoints_);
  append(keypoint_ends_, others.keypoint_ends_);
  for (Record& one : std::span(records_).last(others.size())) {
    if (one.mask != kNoMask) one.mask += first_mask;
    if (one.keypoints != kNoKeypoints) one.keypoints += first_set;
  }
  for (std::uint64_t& end : std::span(keypoint_ends_).subspan(first_set)) end += first_keypoint;
  for (Mask& one : std::span(masks_).last(others.masks_.size())) one.first += first_byte;
}

std::string Detections::partial() const {
  std::string bytes;
  put(bytes, records_);
  put(bytes, masks_);
  put(bytes, counts_);
  put(bytes, keypoints_);
  put(bytes, keypoint_ends_);
  return bytes;
}

void Detections::append_partial(std::string_view partial) {
  Detections others;
  others.records_ = take<Record>(partial);
  others.masks_ = take<Mask>(partial);
  others.counts_ = take<char>(partial);
  others.keypoints_ = take<double>(partial);
  others.keypoint_ends_ = take<std::uint64_t>(partial);
  const auto is_out = [&](const Record& one) {
    return (one.mask != kNoMask && one.mask >= others.masks_.size()) ||
           (one.keypoints != kNoKeypoints && one.keypoints >= others.keypoint_ends_.size());
  };
  const auto is_beyond = [&](const Mask& one) {
    return one.bytes > others.counts_.size() || one.first > others.counts_.size() - one.bytes;
  };
  const auto& ends = others.keypoint_ends_;
  if (!partial.empty() || !std::ranges::is_sorted(ends) ||
      (!ends.empty() && ends.back() > others.keypoints_.size()) ||
      std::ranges::any_of(others.records_, is_out) || std::ranges::any_of(others.masks_, is_beyond))
    throw Error(kBroken);
  append(others);
}

void Detections::sort_by_image() { std::ranges::stable_sort(records_, {}, &Record::image_id); }

void Detections::add(const Detection& one) {
  const bool has_mask = !one.mask.counts.empty();
  if (!one.bbox && !has_mask && one.keypoints.empty())
    throw Error(
        fmt::format("detection {} (image {}) has no box, mask or keypoints", size(), one.image_id));
  if (one.keypoints.size() % 3 != 0)
    throw Error(
        fmt::format("detection {} (image {}) has {} keypoint numbers; expected x y v per point",
                    size(), one.image_id, one.keypoints.size()));
  Record record{one.image_id, one.category_id, one.bbox.value_or(Xywh{}), one.score};
  record.has_bbox = one.bbox.has_value();
  if (has_mask)
    add(record, encode_counts(one.mask), one.mask.height, one.mask.width, one.keypoints);
  else
    add(record, one.keypoints);
}

void Detections::add(const Record& one, std::span<const double> keypoints) {
  records_.push_back(one);
  if (keypoints.empty()) return;
  records_.back().keypoints = static_cast<std::uint32_t>(keypoint_ends_.size());
  keypoints_.insert(keypoints_.end(), keypoints.begin(), keypoints.end());
  keypoint_ends_.push_back(keypoints_.size());
}

void Detections::add(Record one, std::string_view counts, std::uint32_t height, std::uint32_t width,
                     std::span<const double> keypoints) {
  const MaskExtent extent = extent_of(counts, height, width);
  one.mask = static_cast<std::uint32_t>(masks_.size());
  masks_.push_back({counts_.size(), static_cast<std::uint32_t>(counts.size()), extent});
  counts_.insert(counts_.end(), counts.begin(), counts.end());
  add(one, keypoints);
}

}  // namespace millrace::coco
