#include "coco/detections.h"

namespace millrace::coco {

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
}

void Detections::append(const Detections& others, std::size_t times) {
  const auto first_mask = static_cast<std::uint32_t>(masks_.size());
  const std::uint64_t first_byte = counts_.size();
  const auto append = [times](auto& to, const auto& from) {
    if (to.empty()) to.reserve(from.size() * (times + 1) / 8 * 9);
    to.insert(to.end(), from.begin(), from.end());
  };
  append(records_, others.records_);
  append(masks_, others.masks_);
  append(counts_, others.counts_);
  for (Record& one : std::span(records_).last(others.size()))
    if (one.mask != kNoMask) one.mask += first_mask;
  for (Mask& one : std::span(masks_).last(others.masks_.size())) one.first += first_byte;
}

void Detections::add(const Detection& one) {
  Record record{one.image_id, one.category_id, {}, one.score, kNoMask, one.has_bbox};
  std::copy_n(one.bbox, 4, record.bbox);
  if (one.mask.counts.empty())
    add(record);
  else
    add(record, encode_counts(one.mask), one.mask.height, one.mask.width);
}

void Detections::add(Record one, std::string_view counts, std::uint32_t height,
                     std::uint32_t width) {
  const MaskExtent extent = extent_of(counts, height, width);
  one.mask = static_cast<std::uint32_t>(masks_.size());
  masks_.push_back({counts_.size(), static_cast<std::uint32_t>(counts.size()), extent});
  counts_.insert(counts_.end(), counts.begin(), counts.end());
  records_.push_back(one);
}

}  // namespace millrace::coco
