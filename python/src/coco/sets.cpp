// Python bindings for data sets and detections, and for reading their files.
#include "python/src/coco/sets.h"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <algorithm>

#include "millrace/base/errors.h"
#include "millrace/coco/evaluation/matching.h"
#include "python/src/coco/bindings.h"
#include "python/src/coco/index.h"

namespace millrace::python {
namespace {

Truth read_truth(const std::string& path) {
  const nb::gil_scoped_release free;
  return {coco::in_arena(0, [&] { return coco::read_dataset(path); })};
}

Found read_found(const std::string& path, const Truth* truth) {
  const nb::gil_scoped_release free;
  Found found;
  const coco::Dataset* images = truth ? truth->set.get() : nullptr;
  found.all = coco::in_arena(0, [&] { return coco::read_detections(path, images); });
  found.area = coco::area_from(found.all);
  return found;
}

template <class Record>
Array<std::int64_t> ids_of(std::span<const Record> records) {
  std::vector<std::int64_t> ids;
  ids.reserve(records.size());
  for (const Record& one : records) ids.push_back(one.id);
  const std::size_t count = ids.size();
  return array_of(std::move(ids), {count});
}

Array<std::int64_t> image_ids(const Found& found) {
  std::vector<std::int64_t> ids;
  for (std::size_t i = 0; i < found.all.size(); ++i)
    if (ids.empty() || ids.back() != found.all[i].image_id) ids.push_back(found.all[i].image_id);
  std::ranges::sort(ids);
  ids.erase(std::ranges::unique(ids).begin(), ids.end());
  const std::size_t count = ids.size();
  return array_of(std::move(ids), {count});
}

/// Returns {id: annotation}, {id: image}, {id: category}, and the two given dicts, to which it adds
/// the annotations by image and the images by category. Throws KeyError.
nb::tuple index(const nb::dict& dataset, const nb::dict& of_image, const nb::dict& of_category) {
  nb::dict anns, imgs, cats;
  const auto section = [&](const char* name) { return Key(name).find(dataset.ptr()); };
  const auto each = [&](const char* name, const auto& use) {
    PyObject* found = section(name);
    if (!found) return;
    const Items items(found, name, {name, 0});
    for (std::size_t i = 0; i < items.size(); ++i) {
      const Place place{name, i};
      use(dict_at(items[i], place), place);
    }
  };
  const auto set = [](const nb::dict& to, PyObject* key, PyObject* value) {
    if (PyDict_SetItem(to.ptr(), key, value) != 0) nb::raise_python_error();
  };
  const auto append = [&](const nb::dict& to, PyObject* key, PyObject* value) {
    PyObject* list = PyDict_GetItemWithError(to.ptr(), key);
    nb::object made;
    if (!list) {
      if (PyErr_Occurred()) nb::raise_python_error();
      made = nb::steal(PyList_New(0));
      list = made.ptr();
      set(to, key, list);
    }
    if (PyList_Append(list, value) != 0) nb::raise_python_error();
  };
  const bool has_categories = section("categories") != nullptr;
  each(kObjects, [&](PyObject* one, const Place& place) {
    PyObject* image = keys().image_id.get(one, place);
    append(of_image, image, one);
    set(anns, keys().id.get(one, place), one);
    if (has_categories) append(of_category, keys().category_id.get(one, place), image);
  });
  const auto by_id = [&](const nb::dict& to) {
    return [&](PyObject* one, const Place& place) { set(to, keys().id.get(one, place), one); };
  };
  each("images", by_id(imgs));
  each("categories", by_id(cats));
  return nb::make_tuple(anns, imgs, cats, of_image, of_category);
}

}  // namespace

void expect_fit(const coco::Dataset& truth, const coco::Image& image, std::uint32_t height,
                std::uint32_t width, const std::string& whose) {
  const auto image_height = static_cast<std::uint32_t>(image.height);
  const auto image_width = static_cast<std::uint32_t>(image.width);
  if ((height == image_height && width == image_width) || image_height == 0) return;
  for (const coco::Annotation& object : truth.objects(image)) {
    if (object.shape.kind != coco::ShapeKind::mask) continue;
    const auto mask = truth.runs.subspan(object.shape.first, 2);
    if (mask[0] == height && mask[1] == width) return;
  }
  throw Error(fmt::format("{}: the mask is {} x {}, the image {} x {}", whose, height, width,
                          image_height, image_width));
}

Task task_of(std::string_view iou_type) {
  if (iou_type == "bbox") return Task::bbox;
  if (iou_type == "segm") return Task::segm;
  if (iou_type == "keypoints") return Task::keypoints;
  throw nb::value_error(
      fmt::format("iouType is '{}'; expected 'segm', 'bbox' or 'keypoints'", iou_type).c_str());
}

void bind_sets(nb::module_& module) {
  using namespace nb::literals;
  nb::class_<Truth>(module, "Truth", "A data set to evaluate against. Immutable.")
      .def_prop_ro(
          "image_ids", [](const Truth& t) { return ids_of(t.set->images); }, nb::rv_policy::move,
          "All ids, ascending, int64.")
      .def_prop_ro(
          "category_ids", [](const Truth& t) { return ids_of(t.set->categories); },
          nb::rv_policy::move, "All ids, ascending, int64.")
      .def_prop_ro(
          "has_id_zero",
          [](const Truth& t) {
            return std::ranges::any_of(t.set->annotations,
                                       [](const auto& object) { return object.id == 0; });
          },
          "Whether an object has id 0, which means no match.")
      .def("__len__", [](const Truth& t) { return t.set->annotations.size(); });
  nb::class_<Found>(module, "Found", "Detections to evaluate. Immutable.")
      .def("__len__", [](const Found& f) { return f.all.size(); })
      .def_prop_ro("areas",
                   [](const Found& f) {
                     if (f.area == coco::AreaFrom::mask) return "segm";
                     return f.area == coco::AreaFrom::keypoints ? "keypoints" : "bbox";
                   })
      .def_prop_ro("image_ids", &image_ids, nb::rv_policy::move,
                   "Distinct image ids of the detections, ascending, int64.");
  module.def("truth_of_index", &truth_of_index, "img_to_anns"_a, "anns"_a, "imgs"_a, "image_ids"_a,
             "category_ids"_a, "iou_type"_a, "federated"_a = false,
             "The objects of these images and categories (ascending ids).");
  module.def("found_of_index", &found_of_index, "img_to_anns"_a, "anns"_a, "imgs"_a, "image_ids"_a,
             "iou_type"_a, "The detections of these images (ascending ids).");
  module.def("found_of_list", &found_of_list, "results"_a, "iou_type"_a, "areas"_a, "imgs"_a.none(),
             "truth"_a.none(), "The detections of a results list.");
  module.def("found_of_rows", &found_of_rows, "rows"_a, "single"_a,
             "The detections of an array (N, 7); `single`: it was converted from float32.");
  module.def("are_of_images", &are_of_images, "results"_a, "imgs"_a.none(), "truth"_a.none(),
             "required"_a, "Whether the image of each result exists.");
  module.def("read_truth", &read_truth, "path"_a, "Reads an annotation file.");
  module.def("read_found", &read_found, "path"_a, "truth"_a.none(),
             "Reads a results file; `truth` provides the image sizes.");
  module.def("index", &index, "dataset"_a, "of_image"_a, "of_category"_a,
             "Annotations, images and categories by id; annotations by image; images by category.");
}

}  // namespace millrace::python
