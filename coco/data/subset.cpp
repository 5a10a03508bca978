#include "millrace/coco/data/subset.h"

#include <utility>

#include "millrace/coco/data/records.h"

namespace millrace::coco {

std::shared_ptr<const Dataset> subset(const Dataset& data, std::span<const std::size_t> images,
                                      const std::map<std::int64_t, std::int64_t>& categories) {
  Records records;
  for (const auto& category : data.categories) {
    const auto found = categories.find(category.id);
    if (found == categories.end() || found->second != category.id) continue;
    records.add_category(category.id, data.text(category.name));
    records.categories.back().frequency = category.frequency;
  }
  const auto add_ids = [&](std::span<const std::int64_t> ids) {
    std::uint32_t count = 0;
    for (const auto id : ids)
      if (const auto found = categories.find(id); found != categories.end())
        records.category_lists.push_back(found->second), ++count;
    return count;
  };
  for (const auto position : images) {
    const auto& image = data.images[position];
    records.add_image(image.id, data.text(image.file_name), image.width, image.height);
    auto& added = records.images.back();
    added.category_lists = records.category_lists.size();
    added.negatives = add_ids(data.negative_categories(image));
    added.not_exhaustive = add_ids(data.not_exhaustive_categories(image));
    for (const auto& object : data.objects(image)) {
      const auto found = categories.find(object.category_id);
      if (found == categories.end()) continue;
      auto copy = object;
      copy.category_id = found->second;
      records.add(copy, data.segmentation(object), data.keypoints_of(object));
    }
  }
  return assemble(std::move(records), data.source);
}

}  // namespace millrace::coco
