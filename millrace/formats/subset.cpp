#include "millrace/formats/subset.h"

#include <utility>

#include "millrace/coco/data/records.h"

namespace millrace::formats {

std::shared_ptr<const coco::Dataset> subset(const coco::Dataset& data,
                                            const std::function<bool(const coco::Image&)>& keep) {
  coco::Records records;
  for (const auto& category : data.categories) {
    records.add_category(category.id, data.text(category.name));
    records.categories.back().frequency = category.frequency;
  }
  for (const auto& image : data.images) {
    if (!keep(image)) continue;
    records.add_image(image.id, data.text(image.file_name), image.width, image.height);
    auto& kept = records.images.back();
    kept.category_lists = records.category_lists.size();
    kept.negatives = image.negatives;
    kept.not_exhaustive = image.not_exhaustive;
    for (const auto& list :
         {data.negative_categories(image), data.not_exhaustive_categories(image)})
      records.category_lists.insert(records.category_lists.end(), list.begin(), list.end());
    for (const auto& object : data.objects(image))
      records.add(object, data.segmentation(object), data.keypoints_of(object));
  }
  return coco::assemble(std::move(records), data.source);
}

}  // namespace millrace::formats
