// Converts Python dicts to data sets.
#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/coco/data/records.h"
#include "millrace/coco/evaluation/matching.h"
#include "python/src/coco/index.h"
#include "python/src/coco/sets.h"
#include "python/src/coco/shapes.h"

namespace millrace::python {
namespace {

/// Appends a list of an image's category ids and returns its length.
std::uint32_t read_ids(PyObject* image, const Key& key, const Place& place,
                       coco::Records& records) {
  const Items ids(key.get(dict_at(image, place), place), key.name(), place);
  for (std::size_t i = 0; i < ids.size(); ++i)
    records.category_lists.push_back(id_of(ids[i], key.name(), place));
  return static_cast<std::uint32_t>(ids.size());
}

}  // namespace

Truth truth_of_index(const nb::dict& img_to_anns, const nb::dict& anns, const nb::dict& imgs,
                     const Ids& image_ids, const Ids& category_ids, std::string_view iou_type,
                     bool federated) {
  const Task task = task_of(iou_type);
  const Index index(img_to_anns, anns, imgs);
  const auto categories = view(category_ids);
  expect_ascending(view(image_ids), "imgIds");
  expect_ascending(categories, "catIds");
  auto records = std::make_shared<coco::Records>();
  for (const std::int64_t id : categories) records->add_category(id, "");

  std::vector<Shape> shapes;
  std::vector<bool> has_area;
  std::vector<double> keypoints, points;
  for (const std::int64_t id : view(image_ids)) {
    coco::Image image;
    image.id = id;
    image.first = static_cast<std::uint32_t>(records->annotations.size());
    index.each(id, kObjects, [&](PyObject* dict, const Place& place) {
      coco::Annotation one;
      one.image_id = id;
      one.category_id = id_of(keys().category_id.get(dict, place), "category_id", place);
      if (!std::ranges::binary_search(categories, one.category_id)) return;
      one.id = id_of(keys().id.get(dict, place), "id", place);
      if (PyObject* crowd = keys().iscrowd.find(dict)) one.crowd = flag_of(crowd, "iscrowd", place);
      if (PyObject* ignore = keys().ignore.find(dict); ignore && federated)
        one.ignored = flag_of(ignore, "ignore", place);
      PyObject* area = keys().area.find(dict);
      if (area) one.area = ordered_of(area, "area", place);
      has_area.push_back(area != nullptr);
      PyObject* box = task == Task::segm ? keys().bbox.find(dict) : keys().bbox.get(dict, place);
      if (task != Task::segm) read_box(box, place, one.bbox);
      if (task == Task::keypoints) {
        read_keypoints(keys().keypoints.get(dict, place), place, points);
        one.keypoints = keypoints.size();
        one.keypoint_count = static_cast<std::uint16_t>(points.size() / 3);
        keypoints.insert(keypoints.end(), points.begin(), points.end());
        one.num_keypoints = static_cast<std::int32_t>(
            number_of(keys().num_keypoints.get(dict, place), "num_keypoints", place));
      }
      if (task == Task::segm)
        shapes.push_back(shape_of(keys().segmentation.get(dict, place), place));
      else if (!area) {
        PyObject* segmentation = keys().segmentation.find(dict);
        shapes.push_back(segmentation ? shape_of(segmentation, place) : Shape());
      } else {
        shapes.emplace_back();
      }
      records->annotations.push_back(one);
    });
    image.count = static_cast<std::uint32_t>(records->annotations.size()) - image.first;
    if (federated) {
      PyObject* dict = Index::find(index.images, id);
      if (!dict) throw nb::key_error(fmt::format("image {} is not in the data set", id).c_str());
      const std::string name = fmt::format("image {}: images", id);
      image.category_lists = records->category_lists.size();
      image.negatives = read_ids(dict, keys().neg_category_ids, {name.c_str(), 0}, *records);
      image.not_exhaustive =
          read_ids(dict, keys().not_exhaustive_category_ids, {name.c_str(), 0}, *records);
    }
    if (task == Task::segm && image.count > 0) {
      const auto [height, width] = index.size(id);
      image.height = static_cast<std::int32_t>(height);
      image.width = static_cast<std::int32_t>(width);
    }
    records->images.push_back(image);
  }

  const nb::gil_scoped_release free;
  std::vector<coco::Segmentation> decoded(shapes.size());
  coco::in_arena(0, [&] {
    tbb::parallel_for(std::size_t{0}, shapes.size(), [&](std::size_t i) {
      try {
        if (auto* polygons = std::get_if<std::vector<coco::Polygon>>(&shapes[i]))
          decoded[i] = std::move(*polygons);
        else if (!is_none(shapes[i]))
          decoded[i] = mask_of(shapes[i], 0, 0);
      } catch (const Error& problem) {
        throw Error(fmt::format("annotation {}: {}", records->annotations[i].id, problem.what()));
      }
    });
  });
  auto annotations = std::exchange(records->annotations, {});
  records->annotations.reserve(annotations.size());
  for (const coco::Image& image : records->images)
    for (std::size_t i = image.first; i < image.first + image.count; ++i) {
      coco::Annotation& one = annotations[i];
      if (!has_area[i])
        one.area =
            decoded[i].index() == 0 ? one.bbox[2] * one.bbox[3] : coco::shape_area(decoded[i]);
      records->add(one, task == Task::segm ? decoded[i] : coco::Segmentation(),
                   std::span(keypoints).subspan(one.keypoints, 3 * one.keypoint_count));
    }

  auto set = std::make_shared<coco::Dataset>();
  set->source = "the data set";
  set->images = records->images;
  set->annotations = records->annotations;
  set->categories = records->categories;
  set->coordinates = records->coordinates;
  set->polygon_ends = records->polygon_ends;
  set->keypoints = records->keypoints;
  set->category_lists = records->category_lists;
  set->runs = records->runs;
  set->names = records->names;
  set->memory = records;
  return {std::move(set)};
}

}  // namespace millrace::python
