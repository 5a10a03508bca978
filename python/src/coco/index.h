// The index that `COCO.createIndex` builds, and readers of the fields that the evaluator uses.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "python/src/coco/arrays.h"
#include "python/src/coco/objects.h"

namespace millrace::python {

inline constexpr const char* kObjects = "annotations";
inline constexpr const char* kResults = "detections";

inline std::span<const std::int64_t> view(const Ids& ids) { return {ids.data(), ids.size()}; }

/// Throws Unusual unless ids are strictly ascending, as numpy.unique returns them.
void expect_ascending(std::span<const std::int64_t> ids, const char* name);

/// The index that `COCO.createIndex` builds: {image id: [annotation]}, {id: annotation}, {id:
/// image}.
struct Index {
  PyObject *of_image, *annotations, *images;

  Index(const nb::dict& img_to_anns, const nb::dict& anns, const nb::dict& imgs)
      : of_image(img_to_anns.ptr()), annotations(anns.ptr()), images(imgs.ptr()) {}

  /// Returns a borrowed reference; nullptr if not found.
  static PyObject* find(PyObject* dict, std::int64_t id);

  /// Returns height and width of an image. Throws KeyError.
  std::pair<std::uint32_t, std::uint32_t> size(std::int64_t id) const;

  /// Calls `use(annotation, place)` for each annotation of an image, in order.
  template <class F>
  void each(std::int64_t image_id, const char* list, const F& use) const {
    PyObject* found = find(of_image, image_id);
    if (!found) return;
    const Items items(found, list, {list, 0});
    const std::string name = fmt::format("image {}: {}", image_id, list);
    for (std::size_t i = 0; i < items.size(); ++i) {
      const Place place{name.c_str(), i};
      PyObject* one = dict_at(items[i], place);
      // Looks up the annotation by id, like loadAnns: if two have the same id, the later one is
      // used.
      PyObject* id = keys().id.get(one, place);
      PyObject* named = PyDict_GetItemWithError(annotations, id);
      if (!named) {
        if (!PyErr_Occurred()) PyErr_SetObject(PyExc_KeyError, id);
        nb::raise_python_error();
      }
      use(dict_at(named, place), place);
    }
  }
};

/// Reads x, y, width, height. Returns the area as Python computes it, since NumPy numbers may have
/// single precision.
double read_box(PyObject* value, const Place& place, std::span<double, 4> box);

/// Reads x, y, v of each keypoint. Throws Unusual for numbers other than int and float, which
/// includes numpy.float64.
void read_keypoints(PyObject* value, const Place& place, std::vector<double>& keypoints);

}  // namespace millrace::python
