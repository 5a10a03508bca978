// pycocotools' mask functions. Expensive work runs without the GIL on all threads.
#include <fmt/format.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>
#include <tbb/parallel_for.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/coco/evaluation/box_iou.h"
#include "millrace/coco/evaluation/matching.h"
#include "millrace/coco/masks/masks.h"
#include "python/src/coco/arrays.h"
#include "python/src/coco/bindings.h"
#include "python/src/coco/shapes.h"

namespace millrace::python {
namespace {

using coco::Rle;

/// Calls `work(i)` for all i without the GIL: on this thread if `count` is small, otherwise on all
/// threads. Adds the index to the message of an Error.
template <class F>
void for_each(std::size_t count, const char* name, const F& work) {
  const nb::gil_scoped_release free;
  const auto checked = [&](std::size_t i) {
    try {
      work(i);
    } catch (const Error& problem) {
      throw Error(fmt::format("{}[{}]: {}", name, i, problem.what()));
    }
  };
  constexpr std::size_t kWorthThreads = 16;
  if (count < kWorthThreads)
    for (std::size_t i = 0; i < count; ++i) checked(i);
  else
    coco::in_arena(0, [&] { tbb::parallel_for(std::size_t{0}, count, checked); });
}

std::vector<Rle> decoded(const std::vector<RleText>& masks, const char* name) {
  std::vector<Rle> all(masks.size());
  for_each(masks.size(), name, [&](std::size_t i) { all[i] = masks[i].decoded(); });
  return all;
}

nb::list encoded(const std::vector<Rle>& masks) {
  std::vector<std::string> counts(masks.size());
  for_each(masks.size(), "masks", [&](std::size_t i) { counts[i] = encode_counts(masks[i]); });
  nb::list all;
  for (std::size_t i = 0; i < masks.size(); ++i)
    all.append(rle_object(masks[i].height, masks[i].width, counts[i]));
  return all;
}

/// Writes height x width pixels in column-major order, 0 or 1.
void fill_columns(const Rle& mask, std::uint8_t* pixels) {
  int value = 0;
  for (const std::uint32_t run : mask.counts) {
    std::memset(pixels, value, run);
    pixels += run;
    value = 1 - value;
  }
}

/// Bitmaps [N, H, W] with any strides, so that a Fortran-ordered [H, W, N] array need not be
/// copied.
using Bitmaps = nb::ndarray<const std::uint8_t, nb::ndim<3>, nb::device::cpu>;

nb::list encode(const Bitmaps& bitmaps) {
  const std::size_t count = bitmaps.shape(0), height = bitmaps.shape(1), width = bitmaps.shape(2);
  if (height * width > UINT32_MAX)
    throw nb::value_error(fmt::format("bimask: {} x {} pixels exceed the limit of run lengths, "
                                      "4294967295",
                                      height, width)
                              .c_str());
  const auto h = static_cast<std::uint32_t>(height), w = static_cast<std::uint32_t>(width);
  const std::int64_t down = bitmaps.stride(1), right = bitmaps.stride(2);
  const std::uint8_t* data = bitmaps.data();
  const std::int64_t next = bitmaps.stride(0);
  std::vector<Rle> masks(count);
  for_each(count, "bimask", [&](std::size_t i) {
    masks[i] = mask_of_bitmap(data + static_cast<std::int64_t>(i) * next, h, w, down, right);
  });
  return encoded(masks);
}

/// Returns [N, W, H]; its transpose is [H, W, N] in Fortran order.
Array<std::uint8_t> decode(const nb::object& objects) {
  const std::vector<RleText> masks = rle_texts(objects, "rleObjs");
  if (masks.empty()) return array_of<std::uint8_t>({}, {0, 0, 0});
  const std::uint32_t height = masks[0].height, width = masks[0].width;
  for (std::size_t i = 0; i < masks.size(); ++i)
    if (masks[i].height != height || masks[i].width != width)
      fail_value({"rleObjs", i},
                 fmt::format("size {} x {} differs from the size of rleObjs[0], {} x {}",
                             masks[i].height, masks[i].width, height, width));
  const std::size_t pixels = std::size_t{height} * width;
  auto bitmaps = std::make_unique_for_overwrite<std::uint8_t[]>(pixels * masks.size());
  for_each(masks.size(), "rleObjs",
           [&](std::size_t i) { fill_columns(masks[i].decoded(), bitmaps.get() + i * pixels); });
  std::uint8_t* data = bitmaps.release();
  nb::capsule owner(data, [](void* all) noexcept { delete[] static_cast<std::uint8_t*>(all); });
  return {data, {masks.size(), width, height}, owner};
}

Array<std::uint32_t> area(const nb::object& objects) {
  const std::vector<RleText> masks = rle_texts(objects, "rleObjs");
  std::vector<std::uint32_t> areas(masks.size());
  for_each(masks.size(), "rleObjs", [&](std::size_t i) { areas[i] = masks[i].extent().pixels; });
  return array_of(std::move(areas), {masks.size()});
}

Array<double> to_bbox(const nb::object& objects) {
  const std::vector<RleText> masks = rle_texts(objects, "rleObjs");
  std::vector<double> boxes(masks.size() * 4);
  for_each(masks.size(), "rleObjs", [&](std::size_t i) {
    const Box box = masks[i].extent().box;
    const double xywh[] = {box.x1, box.y1, box.width(), box.height()};
    std::memcpy(&boxes[i * 4], xywh, sizeof xywh);
  });
  return array_of(std::move(boxes), {masks.size(), 4});
}

nb::object merge(const nb::object& objects, bool intersect) {
  const std::vector<RleText> masks = rle_texts(objects, "rleObjs");
  if (masks.empty()) return rle_object(0, 0, "");
  const std::vector<Rle> all = decoded(masks, "rleObjs");
  std::string counts;
  {
    const nb::gil_scoped_release free;
    counts = encode_counts(intersect ? coco::intersect(all) : coco::merge(all));
  }
  return rle_object(all[0].height, all[0].width, counts);
}

using Numbers = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Flags = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// Returns the IoU of masks, [D, G].
Array<double> mask_iou(const nb::object& dt, const nb::object& gt, const Flags& iscrowd) {
  const std::vector<Rle> found = decoded(rle_texts(dt, "dt"), "dt");
  const std::vector<Rle> truth = decoded(rle_texts(gt, "gt"), "gt");
  std::vector<double> iou;
  {
    const nb::gil_scoped_release free;
    iou = coco::in_arena(0, [&] {
      return coco::mask_iou(found, truth, {iscrowd.data(), iscrowd.size()});
    });
  }
  return array_of(std::move(iou), {found.size(), truth.size()});
}

/// Returns the IoU of boxes [D, 4] and [G, 4], each x, y, width, height, as [D, G].
Array<double> box_iou(const Numbers& dt, const Numbers& gt, const Flags& iscrowd) {
  const std::size_t found = dt.shape(0), truths = gt.shape(0);
  std::vector<double> iou(found * truths);
  {
    const nb::gil_scoped_release free;
    for (std::size_t d = 0; d < found; ++d)
      for (std::size_t g = 0; g < truths; ++g)
        iou[d * truths + g] =
            coco::box_iou(dt.data() + d * 4, gt.data() + g * 4, iscrowd.data()[g] != 0);
  }
  return array_of(std::move(iou), {found, truths});
}

/// Converts boxes to masks.
nb::list from_boxes(const Numbers& boxes, std::uint32_t height, std::uint32_t width) {
  std::vector<Rle> masks(boxes.shape(0));
  for_each(masks.size(), "bb", [&](std::size_t i) {
    const double* b = boxes.data() + i * 4;
    for (int k = 0; k < 4; ++k)
      if (!std::isfinite(b[k])) throw Error("a coordinate is not finite");
    const double right = b[0] + b[2], bottom = b[1] + b[3];
    const coco::Polygon outline = {b[0], b[1], b[0], bottom, right, bottom, right, b[1]};
    masks[i] = coco::from_polygons({&outline, 1}, height, width);
  });
  return encoded(masks);
}

/// Converts each polygon to a mask.
nb::list from_polygons(const nb::object& objects, std::uint32_t height, std::uint32_t width) {
  const Items items(objects.ptr(), "poly", {"poly", 0});
  std::vector<coco::Polygon> polygons;
  for (std::size_t i = 0; i < items.size(); ++i)
    polygons.push_back(polygon_of(items[i], {"poly", i}));
  std::vector<Rle> masks(polygons.size());
  for_each(masks.size(), "poly", [&](std::size_t i) {
    masks[i] = coco::from_polygons({&polygons[i], 1}, height, width);
  });
  return encoded(masks);
}

/// Converts run lengths given as numbers to compressed counts.
nb::list from_uncompressed(const nb::object& objects) {
  const Items items(objects.ptr(), "ucRles", {"ucRles", 0});
  std::vector<Rle> masks;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Place place{"ucRles", i};
    masks.push_back(runs_of(dict_at(items[i], place), place));
  }
  return encoded(masks);
}

}  // namespace

void bind_masks(nb::module_& module) {
  using namespace nb::literals;
  module.def("encode", &encode, "bitmaps"_a, "RLEs of bitmaps (N, H, W); non-zero = inside.");
  module.def("decode", &decode, "masks"_a, "Bitmaps (N, W, H) of RLEs, column by column.");
  module.def("area", &area, "masks"_a, "Number of pixels in each mask, (N).");
  module.def("to_bbox", &to_bbox, "masks"_a, "Boxes x y width height, (N, 4).");
  module.def("merge", &merge, "masks"_a, "intersect"_a, "Union or intersection of RLEs.");
  module.def("mask_iou", &mask_iou, "dt"_a, "gt"_a, "iscrowd"_a, "IoU of RLEs, (D, G).");
  module.def("box_iou", &box_iou, "dt"_a, "gt"_a, "iscrowd"_a, "IoU of boxes, (D, G).");
  module.def("from_boxes", &from_boxes, "boxes"_a, "height"_a, "width"_a,
             "RLEs of boxes (N, 4), x y width height.");
  module.def("from_polygons", &from_polygons, "polygons"_a, "height"_a, "width"_a,
             "One RLE per polygon.");
  module.def("from_uncompressed", &from_uncompressed, "masks"_a,
             "RLEs with their counts compressed.");
}

}  // namespace millrace::python
