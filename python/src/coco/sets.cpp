// From dicts and files to the arrays that the evaluator reads.
#include "python/src/coco/sets.h"

#include <fmt/format.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/coco/data/records.h"
#include "millrace/coco/evaluation/matching.h"
#include "python/src/coco/arrays.h"
#include "python/src/coco/bindings.h"
#include "python/src/coco/shapes.h"

namespace millrace::python {
namespace {

using coco::Detections;

constexpr const char* kObjects = "annotations";
constexpr const char* kResults = "detections";

std::span<const std::int64_t> view(const Ids& ids) { return {ids.data(), ids.size()}; }

/// Whether ids ascend without repetition, as numpy.unique gives them.
void expect_ascending(std::span<const std::int64_t> ids, const char* name) {
  if (ids.empty() || std::ranges::adjacent_find(ids, std::greater_equal<>()) != ids.end())
    throw Unusual(fmt::format("{} are empty or not in ascending order", name));
}

/// The index that `COCO.createIndex` makes: {image id: [annotation]}, {id: annotation}, {id:
/// image}.
struct Index {
  PyObject *of_image, *annotations, *images;

  Index(const nb::dict& img_to_anns, const nb::dict& anns, const nb::dict& imgs)
      : of_image(img_to_anns.ptr()), annotations(anns.ptr()), images(imgs.ptr()) {}

  static PyObject* find(PyObject* dict, std::int64_t id) {
    const nb::object key = nb::steal(PyLong_FromLongLong(id));
    PyObject* value = PyDict_GetItemWithError(dict, key.ptr());
    if (!value && PyErr_Occurred()) nb::raise_python_error();
    return value;
  }

  /// Height and width of an image. Throws KeyError.
  std::pair<std::uint32_t, std::uint32_t> size(std::int64_t id) const {
    PyObject* image = find(images, id);
    if (!image) throw nb::key_error(fmt::format("image {} is not in the data set", id).c_str());
    const std::string name = fmt::format("image {}: images", id);
    const Place place{name.c_str(), 0};
    const auto side = [&](const Key& key) {
      const std::int64_t pixels = id_of(key.get(image, place), key.name(), place);
      if (pixels < 0 || pixels > (1 << 20))
        throw nb::value_error(fmt::format("image {}: '{}' is {}", id, key.name(), pixels).c_str());
      return static_cast<std::uint32_t>(pixels);
    };
    return {side(keys().height), side(keys().width)};
  }

  /// Calls `use(annotation, place)` for the annotations of an image, in their order.
  template <class F>
  void each(std::int64_t image_id, const char* list, const F& use) const {
    PyObject* found = find(of_image, image_id);
    if (!found) return;
    const Items items(found, list, {list, 0});
    for (std::size_t i = 0; i < items.size(); ++i) {
      const std::string name = fmt::format("image {}: {}", image_id, list);
      const Place place{name.c_str(), i};
      PyObject* one = dict_at(items[i], place);
      // The one that has its id, as loadAnns finds it: of two with one id the later.
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

void read_box(PyObject* value, const Place& place, std::span<double, 4> box) {
  const Items numbers(value, "bbox", place);
  if (numbers.size() != 4)
    fail_value(place, fmt::format("'bbox' has {} numbers, not 4", numbers.size()));
  for (std::size_t i = 0; i < 4; ++i) box[i] = number_of(numbers[i], "bbox", place);
}

/// x y v of each keypoint. Throws Unusual for numbers of other precisions than double.
std::vector<double> read_keypoints(PyObject* value, const Place& place) {
  const Items numbers(value, "keypoints", place);
  std::vector<double> keypoints(numbers.size());
  if (keypoints.size() % 3 != 0 || keypoints.size() > 3 * UINT16_MAX)
    fail_value(place,
               fmt::format("'keypoints' has {} numbers; they are x y v of each", keypoints.size()));
  for (std::size_t i = 0; i < keypoints.size(); ++i) {
    if (!PyFloat_Check(numbers[i]) && !PyLong_Check(numbers[i]))
      throw Unusual(place.text() + ": 'keypoints' holds numbers of another kind");
    keypoints[i] = number_of(numbers[i], "keypoints", place);
  }
  return keypoints;
}

/// Width times height as Python computes it: numbers of NumPy may be of single precision.
double box_area(PyObject* value, const Place& place, std::span<const double, 4> box) {
  const Items numbers(value, "bbox", place);
  const auto plain = [&](std::size_t i) {
    return PyFloat_CheckExact(numbers[i]) || PyLong_CheckExact(numbers[i]);
  };
  if (plain(2) && plain(3)) return box[2] * box[3];
  const nb::object product = nb::steal(PyNumber_Multiply(numbers[2], numbers[3]));
  if (!product) nb::raise_python_error();
  return ordered_of(product.ptr(), "bbox", place);
}

/// Appends a list of categories of an image; gives its length.
std::uint32_t read_ids(PyObject* image, const Key& key, const Place& place,
                       coco::Records& records) {
  const Items ids(key.get(dict_at(image, place), place), key.name(), place);
  for (std::size_t i = 0; i < ids.size(); ++i)
    records.category_lists.push_back(id_of(ids[i], key.name(), place));
  return static_cast<std::uint32_t>(ids.size());
}

// ---- The data set -------------------------------------------------------------------------------

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
  std::vector<double> keypoints;
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
        const auto points = read_keypoints(keys().keypoints.get(dict, place), place);
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
      using Kind = Shape::Kind;
      try {
        if (shapes[i].kind == Kind::polygons)
          decoded[i] = std::move(shapes[i].polygons);
        else if (shapes[i].kind != Kind::none)
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

// ---- Detections ---------------------------------------------------------------------------------

/// Detections whose masks are made in parallel, block by block, without the GIL.
class FoundWriter {
 public:
  explicit FoundWriter(Found& found) : found_(found) {}

  void add(const Detections::Record& record, Shape shape, std::size_t index,
           std::pair<std::uint32_t, std::uint32_t> image_size, std::vector<double> keypoints = {}) {
    if (shape.kind == Shape::Kind::none && waiting_.empty())
      return found_.all.add(record, keypoints);
    waiting_.push_back({record, std::move(shape), index, image_size, std::move(keypoints)});
    if (waiting_.size() == kBlock) flush();
  }

  void flush() {
    const nb::gil_scoped_release free;
    const std::size_t parts = (waiting_.size() + kPart - 1) / kPart;
    std::vector<Detections> done(parts);
    coco::in_arena(0, [&] {
      tbb::parallel_for(std::size_t{0}, parts, [&](std::size_t p) {
        for (std::size_t i = p * kPart; i < std::min(waiting_.size(), (p + 1) * kPart); ++i)
          write(waiting_[i], done[p]);
      });
    });
    for (const Detections& part : done) found_.all.append(part);
    waiting_.clear();
  }

 private:
  static constexpr std::size_t kBlock = 16384, kPart = 256;

  struct Waiting {
    Detections::Record record;
    Shape shape;
    std::size_t index;
    std::pair<std::uint32_t, std::uint32_t> image_size;
    std::vector<double> keypoints;
  };

  static void write(Waiting& one, Detections& out) {
    if (one.shape.kind == Shape::Kind::none) return out.add(one.record, one.keypoints);
    try {
      std::string made;
      auto [height, width] = std::pair(one.shape.height, one.shape.width);
      if (one.shape.kind != Shape::Kind::counts) {
        const coco::Rle mask = mask_of(one.shape, one.image_size.first, one.image_size.second);
        height = mask.height, width = mask.width;
        made = coco::encode_counts(mask);
      }
      const bool is_text = one.shape.kind == Shape::Kind::counts;
      out.add(one.record, is_text ? one.shape.counts : made, height, width, one.keypoints);
    } catch (const Error& problem) {
      throw Error(fmt::format("{}[{}] (image {}): {}", kResults, one.index, one.record.image_id,
                              problem.what()));
    }
  }

  Found& found_;
  std::vector<Waiting> waiting_;
};

/// What a detection of any kind has. Throws ValueError for a NaN score.
Detections::Record record_of(PyObject* dict, const Place& place) {
  Detections::Record one;
  one.category_id = id_of(keys().category_id.get(dict, place), "category_id", place);
  one.score = ordered_of(keys().score.get(dict, place), "score", place);
  return one;
}

Found found_of_index(const nb::dict& img_to_anns, const nb::dict& anns, const nb::dict& imgs,
                     const Ids& image_ids, std::string_view iou_type) {
  const Task task = task_of(iou_type);
  const Index index(img_to_anns, anns, imgs);
  expect_ascending(view(image_ids), "imgIds");
  Found found;
  found.area = coco::AreaFrom::given;
  FoundWriter writer(found);
  for (const std::int64_t id : view(image_ids)) {
    std::optional<std::pair<std::uint32_t, std::uint32_t>> size;
    index.each(id, kResults, [&](PyObject* dict, const Place& place) {
      Detections::Record one = record_of(dict, place);
      one.image_id = id;
      one.area = ordered_of(keys().area.get(dict, place), "area", place);
      const std::int64_t own = id_of(keys().id.get(dict, place), "id", place);
      if (own <= 0) throw Unusual(place.text() + ": an id below 1 leaves what it hits free");
      Shape shape;
      if (task == Task::segm) {
        shape = shape_of(keys().segmentation.get(dict, place), place);
        if (!size) size = index.size(id);
        if (shape.kind == Shape::Kind::none) fail_value(place, "'segmentation' is empty");
      } else if (task == Task::bbox) {
        read_box(keys().bbox.get(dict, place), place, one.bbox);
        one.has_bbox = true;
      }
      std::vector<double> keypoints;
      if (task == Task::keypoints)
        keypoints = read_keypoints(keys().keypoints.get(dict, place), place);
      found.ids.push_back(own);
      writer.add(one, std::move(shape), place.index, size.value_or(std::pair(0U, 0U)),
                 std::move(keypoints));
    });
  }
  writer.flush();
  return found;
}

/// Sizes of images by id, from a dict or a data set.
struct Sizes {
  PyObject* images;  // {id: image}, or nullptr
  const coco::Dataset* set;
  std::int64_t last = -1;
  std::optional<std::pair<std::uint32_t, std::uint32_t>> size;

  std::pair<std::uint32_t, std::uint32_t> of(std::int64_t id) {
    if (size && id == last) return *size;
    last = id;
    if (images) {
      Index index({}, {}, {});
      index.images = images;
      size = index.size(id);
    } else if (const coco::Image* image = set->find_image(id)) {
      size = {static_cast<std::uint32_t>(image->height), static_cast<std::uint32_t>(image->width)};
    } else {
      throw nb::key_error(fmt::format("image {} is not in the data set", id).c_str());
    }
    return *size;
  }
};

/// Detections of a results list as `loadRes` takes it. `areas`: what areas are taken from, "bbox",
/// "segm" or "keypoints".
Found found_of_list(const nb::list& results, std::string_view iou_type, std::string_view areas,
                    const std::optional<nb::dict>& imgs, const Truth* truth) {
  const Task task = task_of(iou_type);
  Sizes sizes{imgs ? imgs->ptr() : nullptr, truth ? truth->set.get() : nullptr, -1, {}};
  Found found;
  found.area = coco::AreaFrom::given;
  FoundWriter writer(found);
  const Items items(results.ptr(), kResults, {kResults, 0});
  const Task area = task_of(areas);
  const bool masks_first = area == Task::segm;
  if (masks_first) found.area = coco::AreaFrom::mask;
  const bool wants_shape = masks_first || task == Task::segm;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Place place{kResults, i};
    PyObject* dict = dict_at(items[i], place);
    Detections::Record one = record_of(dict, place);
    one.image_id = id_of(keys().image_id.get(dict, place), "image_id", place);
    PyObject* box = nullptr;
    if (area == Task::bbox) box = keys().bbox.get(dict, place);
    if (masks_first) box = keys().bbox.find(dict);
    std::vector<double> keypoints;
    if (task == Task::keypoints || area == Task::keypoints)
      keypoints = read_keypoints(keys().keypoints.get(dict, place), place);
    if (area == Task::keypoints) {
      if (task != Task::keypoints) throw Unusual("keypoints as boxes or masks");
      const coco::Xywh around = coco::box_around(keypoints);
      one.area = around[2] * around[3];
    }
    if (box) {
      read_box(box, place, one.bbox);
      one.has_bbox = true;
      one.area = box_area(box, place, one.bbox);
    }
    Shape shape;
    if (wants_shape) {
      PyObject* segmentation =
          masks_first ? keys().segmentation.get(dict, place) : keys().segmentation.find(dict);
      if (segmentation) shape = shape_of(segmentation, place);
      if (masks_first && shape.kind == Shape::Kind::none)
        fail_value(place, "'segmentation' is empty");
    }
    const bool has_shape = shape.kind != Shape::Kind::none;
    writer.add(one, std::move(shape), i, has_shape ? sizes.of(one.image_id) : std::pair(0U, 0U),
               std::move(keypoints));
  }
  writer.flush();
  return found;
}

using Rows = nb::ndarray<const double, nb::shape<-1, 7>, nb::c_contig, nb::device::cpu>;

/// Detections of an array (N, 7): image, x, y, width, height, score, category.
Found found_of_rows(const Rows& rows, bool single) {
  const nb::gil_scoped_release free;
  Found found;
  found.area = coco::AreaFrom::given;
  for (std::size_t i = 0; i < rows.shape(0); ++i) {
    const double* row = rows.data() + 7 * i;
    for (int k = 0; k < 7; ++k)
      if (std::isnan(row[k]) || (k != 5 && std::isinf(row[k])))
        throw Error(fmt::format("results[{}, {}] is not a finite number", i, k));
    Detections::Record one;
    one.image_id = static_cast<std::int64_t>(row[0]);
    one.category_id = static_cast<std::int64_t>(row[6]);
    std::copy_n(row + 1, 4, one.bbox.begin());
    one.has_bbox = true;
    one.score = row[5];
    one.area =
        single ? double{static_cast<float>(row[3]) * static_cast<float>(row[4])} : row[3] * row[4];
    found.all.add(one);
  }
  return found;
}

// ---- Checks and files ---------------------------------------------------------------------------

/// Whether each result of a list is of an image that is there. Throws KeyError for one that lacks
/// 'image_id' or `required`.
bool are_of_images(const nb::list& results, const std::optional<nb::dict>& imgs, const Truth* truth,
                   const std::string& required) {
  const Key key(required.c_str());
  const Items items(results.ptr(), kResults, {kResults, 0});
  PyObject* last = nullptr;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Place place{kResults, i};
    PyObject* dict = dict_at(items[i], place);
    PyObject* id = keys().image_id.get(dict, place);
    if (!required.empty()) key.get(dict, place);
    if (id == std::exchange(last, id)) continue;
    if (imgs) {
      if (!PyDict_GetItemWithError(imgs->ptr(), id)) {
        if (PyErr_Occurred()) nb::raise_python_error();
        return false;
      }
    } else if (!truth->set->find_image(id_of(id, "image_id", place))) {
      return false;
    }
  }
  return true;
}

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

/// {id: annotation}, {id: image}, {id: category}, and what is filled: annotations by image and
/// images by category. Throws KeyError.
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
  throw Error(fmt::format("{}: its mask is {} x {}, its image {} x {}", whose, height, width,
                          image_height, image_width));
}

Task task_of(std::string_view iou_type) {
  if (iou_type == "bbox") return Task::bbox;
  if (iou_type == "segm") return Task::segm;
  if (iou_type == "keypoints") return Task::keypoints;
  throw nb::value_error(
      fmt::format("iouType is '{}'; 'segm', 'bbox' and 'keypoints' are known", iou_type).c_str());
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
          "Whether an object has id 0, which as a match stands for none.")
      .def("__len__", [](const Truth& t) { return t.set->annotations.size(); });
  nb::class_<Found>(module, "Found", "Detections to evaluate. Immutable.")
      .def("__len__", [](const Found& f) { return f.all.size(); })
      .def_prop_ro("areas",
                   [](const Found& f) {
                     if (f.area == coco::AreaFrom::mask) return "segm";
                     return f.area == coco::AreaFrom::keypoints ? "keypoints" : "bbox";
                   })
      .def_prop_ro("image_ids", &image_ids, nb::rv_policy::move,
                   "Those of detections, ascending, each once, int64.");
  module.def("truth_of_index", &truth_of_index, "img_to_anns"_a, "anns"_a, "imgs"_a, "image_ids"_a,
             "category_ids"_a, "iou_type"_a, "federated"_a = false,
             "The objects of these images and categories (ascending ids).");
  module.def("found_of_index", &found_of_index, "img_to_anns"_a, "anns"_a, "imgs"_a, "image_ids"_a,
             "iou_type"_a, "The detections of these images (ascending ids).");
  module.def("found_of_list", &found_of_list, "results"_a, "iou_type"_a, "areas"_a, "imgs"_a.none(),
             "truth"_a.none(), "The detections of a results list.");
  module.def("found_of_rows", &found_of_rows, "rows"_a, "single"_a,
             "The detections of an array (N, 7); `single`: it came from one of float32.");
  module.def("are_of_images", &are_of_images, "results"_a, "imgs"_a.none(), "truth"_a.none(),
             "required"_a, "Whether each result is of an image that is there.");
  module.def("read_truth", &read_truth, "path"_a, "Reads an annotation file.");
  module.def("read_found", &read_found, "path"_a, "truth"_a.none(),
             "Reads a results file; `truth` gives the images' sizes.");
  module.def("index", &index, "dataset"_a, "of_image"_a, "of_category"_a,
             "Annotations, images and categories by id; annotations by image; images by category.");
}

}  // namespace millrace::python
