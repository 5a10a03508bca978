#include "coco/detections.h"

#include "coco/mask_iou.h"

namespace millrace::coco {

Detections::Detections(std::span<const Detection> all) {
  records_.reserve(all.size());
  for (const Detection& one : all) add(one);
}

Rle Detections::mask(std::size_t i) const {
  if (records_[i].mask == kNoMask) return {};
  const Mask& mask = mask_of(records_[i]);
  return decode_counts(counts(mask), mask.height, mask.width);
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
  const Rle mask = decode_counts(counts, height, width);
  const MeasuredMask measured(mask);
  one.mask = static_cast<std::uint32_t>(masks_.size());
  masks_.push_back({counts_.size(), static_cast<std::uint32_t>(counts.size()), height, width,
                    static_cast<std::uint32_t>(measured.pixels), measured.box});
  counts_ += counts;
  records_.push_back(one);
}

}  // namespace millrace::coco
