// Converts Python dicts and arrays to detections.
#include <fmt/format.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_reduce.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/coco/evaluation/matching.h"
#include "python/src/coco/index.h"
#include "python/src/coco/sets.h"
#include "python/src/coco/shapes.h"

namespace millrace::python {
namespace {

using coco::Detections;

/// Appends detections in their order, block by block: other threads convert the masks of a block
/// while the next block is read. Create, use and destroy it with the GIL held; it releases the GIL
/// while waiting.
class FoundWriter {
 public:
  /// `total` is the approximate number of detections.
  FoundWriter(Found& found, std::size_t total) : found_(found), blocks_(total / kBlock + 1) {}
  FoundWriter(const FoundWriter&) = delete;
  ~FoundWriter() {
    const nb::gil_scoped_release free;
    try {
      arena_.execute([&] { work_.cancel(), work_.wait(); });
    } catch (...) {  // another error is already being handled
    }
  }

  void add(const Detections::Record& record, Shape shape, std::size_t index,
           std::pair<std::uint32_t, std::uint32_t> image_size,
           std::span<const double> keypoints = {}) {
    if (is_none(shape) && next_.waiting.empty())
      next_.ready.add(record, keypoints);
    else
      next_.waiting.push_back({record, std::move(shape), index, image_size,
                               std::vector(keypoints.begin(), keypoints.end())});
    if (next_.ready.size() + next_.waiting.size() == kBlock) start();
  }

  /// Waits until all detections are written. Throws Error for an invalid mask.
  void finish() {
    start();
    wait();
  }

 private:
  static constexpr std::size_t kBlock = 8192, kPart = 256;

  struct Waiting {
    Detections::Record record;
    Shape shape;
    std::size_t index;
    std::pair<std::uint32_t, std::uint32_t> image_size;
    std::vector<double> keypoints;
  };
  struct Block {
    Detections ready;              // detections before the first one with a mask
    std::vector<Waiting> waiting;  // all following detections
  };

  /// Waits for the previous block, then starts writing the block just read.
  void start() {
    wait();
    std::swap(current_, next_);
    next_.ready.clear();
    next_.waiting.clear();
    arena_.execute([&] { work_.run([&] { write(); }); });
  }

  void wait() {
    const nb::gil_scoped_release free;
    arena_.execute([&] { work_.wait(); });
  }

  void write() {
    const auto& waiting = current_.waiting;
    const std::size_t parts = (waiting.size() + kPart - 1) / kPart;
    std::vector<Detections> done(parts);
    tbb::parallel_for(std::size_t{0}, parts, [&](std::size_t p) {
      for (std::size_t i = p * kPart; i < std::min(waiting.size(), (p + 1) * kPart); ++i)
        add_mask(waiting[i], done[p]);
    });
    found_.all.append(current_.ready, blocks_);
    for (const Detections& part : done) found_.all.append(part, blocks_ * (kBlock / kPart));
  }

  static void add_mask(const Waiting& one, Detections& out) {
    if (is_none(one.shape)) return out.add(one.record, one.keypoints);
    try {
      if (const auto* text = std::get_if<RleText>(&one.shape))
        return out.add(one.record, text->counts, text->height, text->width, one.keypoints);
      const coco::Rle mask = mask_of(one.shape, one.image_size.first, one.image_size.second);
      out.add(one.record, coco::encode_counts(mask), mask.height, mask.width, one.keypoints);
    } catch (const Error& problem) {
      throw Error(fmt::format("{}[{}] (image {}): {}", kResults, one.index, one.record.image_id,
                              problem.what()));
    }
  }

  Found& found_;
  std::size_t blocks_;  // approximate number of blocks
  Block current_, next_;
  tbb::task_arena arena_{coco::allowed_threads()};
  tbb::task_group work_;
};

/// Reads the fields common to all detections. Throws ValueError for a NaN score.
Detections::Record record_of(PyObject* dict, const Place& place) {
  Detections::Record one;
  one.category_id = id_of(keys().category_id.get(dict, place), "category_id", place);
  one.score = ordered_of(keys().score.get(dict, place), "score", place);
  return one;
}

/// Image sizes by id, from a dict or a data set.
struct Sizes {
  PyObject* images;  // {id: image}; nullptr = use `set`
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

}  // namespace

Found found_of_index(const nb::dict& img_to_anns, const nb::dict& anns, const nb::dict& imgs,
                     const Ids& image_ids, std::string_view iou_type) {
  const Task task = task_of(iou_type);
  const Index index(img_to_anns, anns, imgs);
  expect_ascending(view(image_ids), "imgIds");
  Found found;
  found.area = coco::AreaFrom::given;
  FoundWriter writer(found, static_cast<std::size_t>(PyDict_Size(anns.ptr())));
  std::vector<double> keypoints;
  for (const std::int64_t id : view(image_ids)) {
    std::optional<std::pair<std::uint32_t, std::uint32_t>> size;
    index.each(id, kResults, [&](PyObject* dict, const Place& place) {
      Detections::Record one = record_of(dict, place);
      one.image_id = id;
      one.area = ordered_of(keys().area.get(dict, place), "area", place);
      const std::int64_t own = id_of(keys().id.get(dict, place), "id", place);
      if (own <= 0)
        throw Unusual(place.text() + ": an id below 1 cannot mark an object as matched");
      Shape shape;
      if (task == Task::segm) {
        shape = shape_of(keys().segmentation.get(dict, place), place);
        if (!size) size = index.size(id);
        if (is_none(shape)) fail_value(place, "'segmentation' is empty");
      } else if (task == Task::bbox) {
        read_box(keys().bbox.get(dict, place), place, one.bbox);
        one.has_bbox = true;
      }
      if (task == Task::keypoints)
        read_keypoints(keys().keypoints.get(dict, place), place, keypoints);
      found.ids.push_back(own);
      writer.add(one, std::move(shape), place.index, size.value_or(std::pair(0U, 0U)), keypoints);
    });
  }
  writer.finish();
  return found;
}

Found found_of_list(const nb::list& results, std::string_view iou_type, std::string_view areas,
                    const std::optional<nb::dict>& imgs, const Truth* truth) {
  const Task task = task_of(iou_type);
  Sizes sizes{imgs ? imgs->ptr() : nullptr, truth ? truth->set.get() : nullptr, -1, {}};
  Found found;
  found.area = coco::AreaFrom::given;
  const Items items(results.ptr(), kResults, {kResults, 0});
  FoundWriter writer(found, items.size());
  std::vector<double> keypoints;
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
    if (task == Task::keypoints || area == Task::keypoints)
      read_keypoints(keys().keypoints.get(dict, place), place, keypoints);
    if (area == Task::keypoints) {
      if (task != Task::keypoints) throw Unusual("keypoints cannot be evaluated as boxes or masks");
      const coco::Xywh around = coco::box_around(keypoints);
      one.area = around[2] * around[3];
    }
    if (box) {
      one.area = read_box(box, place, one.bbox);
      one.has_bbox = true;
    }
    Shape shape;
    if (wants_shape) {
      PyObject* segmentation =
          masks_first ? keys().segmentation.get(dict, place) : keys().segmentation.find(dict);
      if (segmentation) shape = shape_of(segmentation, place);
      if (masks_first && is_none(shape)) fail_value(place, "'segmentation' is empty");
    }
    const bool has_shape = !is_none(shape);
    writer.add(one, std::move(shape), i, has_shape ? sizes.of(one.image_id) : std::pair(0U, 0U),
               keypoints);
  }
  writer.finish();
  return found;
}

Found found_of_rows(const Rows& rows, bool single) {
  const nb::gil_scoped_release free;
  constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  std::vector<Detections::Record> records(rows.shape(0));
  const auto read = [&](std::size_t i) {  // returns the index of the first invalid number
    const double* row = rows.data() + 7 * i;
    for (std::size_t k = 0; k < 7; ++k)
      if (std::isnan(row[k]) || (k != 5 && std::isinf(row[k]))) return 7 * i + k;
    Detections::Record& one = records[i];
    one.image_id = static_cast<std::int64_t>(row[0]);
    one.category_id = static_cast<std::int64_t>(row[6]);
    std::copy_n(row + 1, 4, one.bbox.begin());
    one.has_bbox = true;
    one.score = row[5];
    one.area =
        single ? double{static_cast<float>(row[3]) * static_cast<float>(row[4])} : row[3] * row[4];
    return kNone;
  };
  const std::size_t wrong = coco::in_arena(0, [&] {
    using Range = tbb::blocked_range<std::size_t>;
    return tbb::parallel_reduce(
        Range(0, records.size(), 4096), kNone,
        [&](const Range& range, std::size_t first) {
          for (std::size_t i = range.begin(); i < range.end(); ++i)
            first = std::min(first, read(i));
          return first;
        },
        [](std::size_t a, std::size_t b) { return std::min(a, b); });
  });
  if (wrong != kNone)
    throw Error(fmt::format("results[{}, {}] is not a finite number", wrong / 7, wrong % 7));
  Found found;
  found.area = coco::AreaFrom::given;
  found.all = Detections(std::move(records));
  return found;
}

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

}  // namespace millrace::python
