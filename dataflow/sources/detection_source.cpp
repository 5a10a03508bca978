#include "millrace/dataflow/sources/detection_source.h"

#include <fmt/format.h>

#include <utility>

#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/base/text.h"

namespace millrace {
namespace {

bool is_ignored(const coco::Annotation& object) { return object.ignored && !object.crowd; }

}  // namespace

DetectionSource::DetectionSource(DataSplit split, bool filter_empty)
    : split_(std::move(split)), class_of_category_(split_.annotations->categories.size(), -1) {
  const auto& dataset = *split_.annotations;
  for (std::size_t k = 0; k < split_.category_ids.size(); ++k)
    if (const auto category = dataset.category_index(split_.category_ids[k]); category >= 0)
      class_of_category_[static_cast<std::size_t>(category)] = static_cast<int>(k);

  for (std::uint32_t i = 0; i < dataset.images.size(); ++i) {
    const auto& image = dataset.images[i];
    bool worth_it = !filter_empty;
    for (const auto& object : dataset.objects(image)) {
      if (class_of(object) < 0) continue;
      if (is_ignored(object))
        ++ignored_;
      else if (has_pixels(object, image))
        worth_it = worth_it || !object.crowd;
      else if (++thin_ == 1)
        first_thin_ = object.id;
    }
    if (worth_it) images_.push_back(i);
  }
}

void DetectionSource::report_unusable() const {
  const auto& file = split_.annotations->source;
  if (ignored_ > 0) log_info("{}: skipped {} marked 'ignore'", file, counted(ignored_, "object"));
  if (thin_ > 0)
    log_warning(
        "{}: skipped {} with boxes narrower or lower than one pixel inside the image; the first: "
        "annotation {}",
        file, counted(thin_, "object"), first_thin_);
}

int DetectionSource::class_of(const coco::Annotation& object) const {
  const auto category = split_.annotations->category_index(object.category_id);
  return category < 0 ? -1 : class_of_category_[static_cast<std::size_t>(category)];
}

Sample DetectionSource::sample(std::int64_t index, bool with_outlines) const {
  const auto& image = split_.annotations->images[images_[static_cast<std::size_t>(index)]];
  Sample sample;
  sample.image_id = image.id;
  sample.path = (split_.images / split_.annotations->text(image.file_name)).string();
  sample.width = image.width;
  sample.height = image.height;
  for (const auto& object : split_.annotations->objects(image)) {
    const auto number = class_of(object);
    if (number < 0 || is_ignored(object) || !has_pixels(object, image)) continue;
    sample.objects.boxes.push_back(clipped_box(object, image));
    sample.objects.classes.push_back(number);
    sample.objects.crowd.push_back(object.crowd);
    auto& shape = sample.objects.segmentations.emplace_back();
    if (with_outlines)
      shape = split_.annotations->segmentation(object);
    else if (object.shape.kind != coco::ShapeKind::none)
      shape = std::vector<coco::Polygon>();
  }
  return sample;
}

SourcePtr<Sample> open_source(DataSplit split, bool filter_empty) {
  const auto& file = split.annotations->source;
  auto source = std::make_shared<const DetectionSource>(split, filter_empty);
  source->report_unusable();
  if (source->size() == 0)
    throw ConfigError(
        fmt::format("{}: no image has an object of the classes to detect; see data.classes and "
                    "data.filter_empty",
                    file));
  return source;
}

}  // namespace millrace
