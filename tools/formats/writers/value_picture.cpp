#include "millrace/tools/formats/writers/value_picture.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>

#include "millrace/tools/formats/writers/losses.h"

namespace millrace::formats {

ValuePicture value_picture(const coco::Dataset& data, const coco::Image& image, bool with_crowds,
                           coco::Findings& findings) {
  const auto objects = data.objects(image);
  const auto width = static_cast<std::uint32_t>(image.width),
             height = static_cast<std::uint32_t>(image.height);
  ValuePicture result{{width, height}, std::vector<bool>(objects.size())};
  auto& values = result.picture.values;
  values.resize(std::size_t{width} * height);
  std::vector<coco::Rle> masks(objects.size());
  std::vector<std::uint64_t> whole(objects.size()), left(objects.size());
  std::vector<std::size_t> order;
  for (std::size_t k = 0; k < objects.size(); ++k) {
    if (objects[k].shape.kind == coco::ShapeKind::none || (objects[k].crowd && !with_crowds))
      continue;
    masks[k] = coco::mask_of(data.segmentation(objects[k]), height, width);
    whole[k] = coco::area(masks[k]);
    order.push_back(k);
  }
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::size_t k) { return whole[k]; });
  std::vector<std::uint8_t> bitmap(values.size());
  for (const auto k : order) {
    coco::decode(masks[k], bitmap.data());
    for (std::size_t i = 0; i < bitmap.size(); ++i)
      if (bitmap[i] != 0) values[i] = static_cast<std::uint32_t>(k + 1);
  }
  for (const auto value : values)
    if (value > 0) ++left[value - 1];
  for (std::size_t k = 0; k < objects.size(); ++k) {
    result.shown[k] = left[k] > 0;
    if (result.shown[k] && left[k] < whole[k])
      tell_lost(findings, kPixelsHidden, data, image, objects[k]);
  }
  return result;
}

}  // namespace millrace::formats
