#include "python/src/flow/batch.h"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <utility>
#include <vector>

#include "millrace/base/digest.h"
#include "millrace/dataflow/detection/geometry.h"
#include "python/src/flow/bindings.h"
#include "python/src/flow/values.h"

namespace millrace::python {
namespace {

static_assert(sizeof(Box) == 4 * sizeof(float));

PythonBatch& batch_of(nb::handle self) { return nb::cast<PythonBatch&>(self); }

/// Returns a list with `array(objects)` for the objects of each image.
template <class F>
nb::list per_image(nb::handle self, F array) {
  nb::list list;
  for (auto& objects : batch_of(self).batch().objects) list.append(array(objects));
  return list;
}

/// Returns an array [N, 2] with the two numbers `pair(ImageInfo)` of each image.
template <class T, class F>
nb::object of_images(nb::handle self, F pair) {
  std::vector<T> values;
  const auto& images = batch_of(self).batch().images;
  for (const auto& image : images) {
    const auto [first, second] = pair(image);
    values.insert(values.end(), {first, second});
  }
  return array_of(std::move(values), {images.size(), 2});
}

nb::object image_ids(nb::handle self) {
  std::vector<std::int64_t> ids;
  for (const auto& image : batch_of(self).batch().images) ids.push_back(image.image_id);
  const auto count = ids.size();
  return array_of(std::move(ids), {count});
}

nb::object bitmaps(nb::handle self, std::int64_t index) {
  const auto& batch = batch_of(self).batch();
  const auto images = static_cast<std::int64_t>(batch.size());
  if (index < -images || index >= images)
    throw nb::index_error(
        fmt::format("image index {} is out of range for a batch of {}", index, images).c_str());
  const auto i = static_cast<std::size_t>(index < 0 ? index + images : index);
  const auto& objects = batch.objects[i];
  const auto height = static_cast<std::size_t>(batch.images[i].height);
  const auto width = static_cast<std::size_t>(batch.images[i].width);
  std::unique_ptr<bool[]> pixels;
  without_gil([&] {
    pixels.reset(new bool[objects.size() * height * width]);
    for (std::size_t k = 0; k < objects.size(); ++k)
      coco::decode(
          rasterised(objects.segmentations[k], {batch.images[i].width, batch.images[i].height}),
          reinterpret_cast<std::uint8_t*>(pixels.get() + k * height * width));
  });
  auto* memory = pixels.release();
  const nb::capsule owner(memory,
                          [](void* pointer) noexcept { delete[] static_cast<bool*>(pointer); });
  return array_over(memory, {objects.size(), height, width}, owner);
}

std::string text(nb::handle self) {
  const auto& batch = batch_of(self).batch();
  return fmt::format("<batch {}: {} images of {} x {}, epoch {}>", batch_of(self).number(),
                     batch.size(), batch.width, batch.height, batch_of(self).delivery().epoch);
}

}  // namespace

void add_batch(nb::module_& module) {
  nb::class_<PythonBatch>(
      module, "Batch",
      "N padded images and their objects. The arrays of pixels, boxes, labels, crowd flags and\n"
      "segmentations are views of the memory that the flow's threads filled, without a copy.\n"
      "The memory is reused after the batch and all its views are released; until then the\n"
      "caller may also write to it. Coordinates are pixels of the batch.")
      .def_prop_ro(
          "images",
          [](nb::handle self) {
            const auto& batch = batch_of(self).batch();
            return array_over(batch.pixels.get(),
                              {batch.size(), static_cast<std::size_t>(batch.height),
                               static_cast<std::size_t>(batch.width), 3},
                              self);
          },
          "(N, H, W, 3) uint8, RGB, zero outside each image's own size.")
      .def_prop_ro(
          "boxes",
          [](nb::handle self) {
            return per_image(self, [&](Instances& objects) {
              return array_over(reinterpret_cast<float*>(objects.boxes.data()), {objects.size(), 4},
                                self);
            });
          },
          "N arrays (objects, 4) float32: x1 y1 x2 y2.")
      .def_prop_ro(
          "labels",
          [](nb::handle self) {
            return per_image(self, [&](Instances& objects) {
              return array_over(objects.classes.data(), {objects.size()}, self);
            });
          },
          "N arrays (objects,) int32: indices into `Flow.classes`.")
      .def_prop_ro(
          "crowd",
          [](nb::handle self) {
            return per_image(self, [&](Instances& objects) {
              return array_over(reinterpret_cast<bool*>(objects.crowd.data()), {objects.size()},
                                self);
            });
          },
          "N arrays (objects,) bool: crowd regions.")
      .def_prop_ro(
          "segmentations",
          [](nb::handle self) {
            return per_image(self, [&](Instances& objects) {
              nb::list list;
              for (const auto& shape : objects.segmentations)
                list.append(segmentation_to_python(shape, self));
              return list;
            });
          },
          "N lists with one mask per object: a list of polygons, float64 arrays x0 y0 x1 y1 ...;\n"
          "or {\"size\": (height, width), \"counts\": uint32 array of run lengths, column by\n"
          "column, zeros first}; or None.")
      .def("bitmaps", &bitmaps, nb::arg("image"),
           "(objects, height, width) bool: the masks of one image at its own size (`sizes`),\n"
           "by COCO's rasteriser. IndexError if the batch has no such image.")
      .def_prop_ro("image_ids", &image_ids, "(N,) int64")
      .def_prop_ro(
          "sizes",
          [](nb::handle self) {
            return of_images<std::int32_t>(self, [](const ImageInfo& image) {
              return std::pair{image.height, image.width};
            });
          },
          "(N, 2) int32: height and width of each image in the batch, without padding.")
      .def_prop_ro(
          "original_sizes",
          [](nb::handle self) {
            return of_images<std::int32_t>(self, [](const ImageInfo& image) {
              return std::pair{image.original_height, image.original_width};
            });
          },
          "(N, 2) int32: height and width of each file.")
      .def_prop_ro(
          "scales",
          [](nb::handle self) {
            return of_images<float>(self, [](const ImageInfo& image) {
              return std::pair{image.scale_x, image.scale_y};
            });
          },
          "(N, 2) float32: pixels of the batch per pixel of the file, in x and y.")
      .def_prop_ro(
          "number", [](nb::handle self) { return batch_of(self).number(); },
          "Number of the batch in the training run or evaluation pass, from 0; equal on all ranks.")
      .def_prop_ro(
          "epoch", [](nb::handle self) { return batch_of(self).delivery().epoch; },
          "Epoch of its first image, from 0.")
      .def_prop_ro(
          "progress", [](nb::handle self) { return batch_of(self).delivery().progress; },
          "Epochs up to and including this batch, over all ranks.")
      .def_prop_ro(
          "cursor",
          [](nb::handle self) {
            const auto& cursor = batch_of(self).delivery().cursor;
            nb::list pending;
            for (const auto position : cursor.pending) pending.append(position);
            return nb::make_tuple(cursor.next, pending);
          },
          "Position after this batch: the next sample, and earlier samples that are pending.")
      .def(
          "digest",
          [](nb::handle self) {
            const auto& batch = batch_of(self).batch();
            return without_gil([&] { return hex(millrace::digest(batch)); });
          },
          "Digest of the batch's contents, as in `trainer bench dataflow --digest`.")
      .def("__len__", [](nb::handle self) { return batch_of(self).batch().size(); })
      .def("__repr__", &text);
}

}  // namespace millrace::python
