#include "python/src/flow/stage.h"

#include <fmt/format.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "millrace/base/errors.h"
#include "millrace/dataflow/detection/detection_stages.h"
#include "python/src/flow/bindings.h"
#include "python/src/flow/values.h"

namespace millrace::python {
namespace {

constexpr const char* kName = "python";
// Maximum number of stored exceptions. A flow ends with the exception that is first in its order.
constexpr std::size_t kMostRaised = 64;

thread_local FunctionsPtr functions_of_start;

/// A sample during the call of a function. Objects are converted to arrays on first access; the
/// flow continues with the arrays that were read or set.
class PythonSample {
 public:
  PythonSample(Sample sample, Rng& rng) : sample_(std::move(sample)), rng_(&rng) {}

  /// Returns the sample with the function's changes; any later access is an error. Throws Error.
  Sample take() {
    auto& objects = sample_->objects;
    if (boxes_) {
      const auto values = numbers_in<float>(*boxes_, 4, "boxes");
      objects.boxes.resize(values.size() / 4);
      std::memcpy(static_cast<void*>(objects.boxes.data()), values.data(),
                  values.size() * sizeof(float));
    }
    if (labels_) objects.classes = numbers_in<std::int32_t>(*labels_, 0, "labels");
    if (crowd_) objects.crowd = numbers_in<std::uint8_t>(*crowd_, 0, "crowd flags");
    if (segmentations_) {
      objects.segmentations.clear();
      for (const auto item : nb::iter(*segmentations_))
        objects.segmentations.push_back(segmentation_from_python(item));
    }
    // A view of the pixels may still exist; it keeps them, and the flow gets a copy.
    if (shown_)
      if (auto& pixels = sample_->image.pixels(); pixels.u && pixels.u->refcount > 1)
        pixels = pixels.clone();
    auto sample = std::move(*sample_);
    sample_.reset();
    return sample;
  }

  const Sample& sample() const {
    if (!sample_)
      throw nb::builtin_exception(
          nb::exception_type::runtime_error,
          "this sample was already returned to the flow; use it only during the call of the stage");
    return *sample_;
  }
  Sample& sample() { return const_cast<Sample&>(std::as_const(*this).sample()); }

  nb::object image() {
    auto& image = sample().image;
    if (image.empty()) return nb::none();
    shown_ = true;
    auto* pixels = new cv::Mat(image.pixels());
    const nb::capsule owner(pixels,
                            [](void* pointer) noexcept { delete static_cast<cv::Mat*>(pointer); });
    if (!pixels->isContinuous()) *pixels = image.pixels() = pixels->clone();
    return array_over(
        pixels->data,
        {static_cast<std::size_t>(pixels->rows), static_cast<std::size_t>(pixels->cols), 3}, owner);
  }

  void set_image(nb::handle value) {
    auto& image = sample().image;
    nb::ndarray<const std::uint8_t, nb::shape<-1, -1, 3>, nb::device::cpu> array;
    if (!nb::try_cast(value, array, /*convert=*/false) || array.size() == 0)
      throw nb::type_error("image must be an array (height, width, 3) of uint8, RGB");
    cv::Mat pixels(static_cast<int>(array.shape(0)), static_cast<int>(array.shape(1)), CV_8UC3);
    for (int y = 0; y < pixels.rows; ++y) {
      const auto* from = array.data() + y * array.stride(0);
      auto* to = pixels.ptr<std::uint8_t>(y);
      if (array.stride(1) == 3 && array.stride(2) == 1) {
        std::memcpy(to, from, std::size_t{3} * static_cast<std::size_t>(pixels.cols));
        continue;
      }
      for (int x = 0; x < pixels.cols; ++x)
        for (int c = 0; c < 3; ++c) *to++ = from[x * array.stride(1) + c * array.stride(2)];
    }
    image = LazyImage(std::move(pixels));
  }

  nb::object boxes() {
    const auto& boxes = sample().objects.boxes;
    if (!boxes_) {
      const auto* first = reinterpret_cast<const float*>(boxes.data());
      boxes_ = array_of(std::vector<float>(first, first + 4 * boxes.size()), {boxes.size(), 4});
    }
    return *boxes_;
  }
  nb::object labels() {
    const auto& classes = sample().objects.classes;
    if (!labels_) labels_ = array_of(std::vector(classes), {classes.size()});
    return *labels_;
  }
  nb::object crowd() {
    const auto& flags = sample().objects.crowd;
    if (!crowd_) crowd_ = array_of(std::vector(flags), {flags.size()}).attr("astype")("bool");
    return *crowd_;
  }
  nb::object segmentations() {
    const auto& shapes = sample().objects.segmentations;
    if (!segmentations_) {
      nb::list list;
      for (const auto& shape : shapes) {
        auto* kept = new coco::Segmentation(shape);
        const nb::capsule owner(
            kept, [](void* pointer) noexcept { delete static_cast<coco::Segmentation*>(pointer); });
        list.append(segmentation_to_python(*kept, owner));
      }
      segmentations_ = std::move(list);
    }
    return *segmentations_;
  }

  void set_boxes(nb::object value) { set(boxes_, std::move(value)); }
  void set_labels(nb::object value) { set(labels_, std::move(value)); }
  void set_crowd(nb::object value) { set(crowd_, std::move(value)); }
  void set_segmentations(nb::object value) { set(segmentations_, std::move(value)); }

  nb::object random() {
    sample();
    if (!random_) random_ = nb::module_::import_("numpy.random").attr("default_rng")((*rng_)());
    return *random_;
  }

 private:
  void set(std::optional<nb::object>& member, nb::object value) {
    sample();
    member = std::move(value);
  }

  std::optional<Sample> sample_;
  Rng* rng_;
  bool shown_ = false;
  std::optional<nb::object> boxes_, labels_, crowd_, segmentations_, random_;
};

/// Returns true if the value is a Python or NumPy bool.
bool is_bool(nb::handle value) {
  if (PyBool_Check(value.ptr())) return true;
  const auto name = nb::cast<std::string>(value.type().attr("__name__"));
  return name == "bool" || name == "bool_";
}

/// Calls a function with the sample. Returns an empty message if the function drops the sample.
/// Throws DataError or Error naming the sample; the engine adds the function's name.
Message call(Functions& functions, std::size_t index, Message message, Rng& rng) {
  const nb::gil_scoped_acquire gil;
  auto sample = message.take<Sample>();
  const auto of_sample = fmt::format("image {} ({})", sample.image_id, sample.path);
  try {
    const auto given = nb::cast(PythonSample(std::move(sample), rng));
    const auto result = functions.all.at(index)(given);
    if (is_bool(result)) {
      if (PyObject_IsTrue(result.ptr()) != 1) return {};
    } else if (!result.is(given)) {
      throw Error(fmt::format("returned {}; expected the sample, True (keep it) or False (skip it)",
                              result.is_none()
                                  ? "None"
                                  : "a different object of class " +
                                        nb::cast<std::string>(result.type().attr("__qualname__"))));
    }
    return Message::of(nb::cast<PythonSample&>(given).take());
  } catch (const nb::python_error& error) {
    auto text = fmt::format("{}: {}", of_sample, text_of(error));
    if (is_data_error(error)) throw DataError(text);
    if (functions.raised.size() < kMostRaised)
      functions.raised.emplace_back(text, nb::borrow(error.value()));
    throw Error(text);
  } catch (const std::exception& problem) {
    throw Error(fmt::format("{}: {}", of_sample, problem.what()));
  }
}

struct PythonStageOptions {
  std::string function;
  void describe(Options& o) {
    o.add("function", function, "name of the function given to the flow");
  }
};

Stage python_stage(const Config& table, const DetectionContext& context) {
  const auto name = read_options<PythonStageOptions>(table, {"type"}).function;
  const auto index =
      static_cast<std::size_t>(std::ranges::count_if(context.in_front, [](const Config& before) {
        return component_type(before, detection_stages().kind()) == kName;
      }));
  const auto functions = functions_of_start;
  if (!context.only_checked && (!functions || index >= functions->all.size()))
    throw ConfigError(
        fmt::format("{}: a stage of type \"python\" must be a function in `stages` of "
                    "millrace.data.Flow; a file cannot define one",
                    table.origin.text()));
  return {name, MessageType::of<Sample>(), MessageType::of<Sample>(),
          Map{[=](Message message, Rng& rng) {
                return call(*functions, index, std::move(message), rng);
              },
              /*random=*/true}};
}

MILLRACE_REGISTER(detection_stages().add<PythonStageOptions>(
    kName, "a Python function called with each sample", {python_stage}));

template <class T>
nb::tuple pair(T first, T second) {
  return nb::make_tuple(first, second);
}

}  // namespace

ScopedFunctions::ScopedFunctions(FunctionsPtr functions)
    : before_(std::exchange(functions_of_start, std::move(functions))) {}
ScopedFunctions::~ScopedFunctions() { functions_of_start = std::move(before_); }

void add_sample(nb::module_& module) {
  nb::class_<PythonSample>(
      module, "Sample",
      "One sample as passed to a stage function, which must not keep it. The flow continues with\n"
      "the arrays that the function changes or sets. Coordinates are pixels of `image`.")
      .def_prop_ro("image_id", [](const PythonSample& self) { return self.sample().image_id; })
      .def_prop_ro("path", [](const PythonSample& self) { return self.sample().path; })
      .def_prop_ro(
          "original_size",
          [](const PythonSample& self) { return pair(self.sample().height, self.sample().width); },
          "Height and width of the image in the file; 0 if not yet known.")
      .def_prop_rw(
          "image", &PythonSample::image,
          [](PythonSample& self, nb::handle value) { self.set_image(value); },
          "(height, width, 3) uint8, RGB; None before `decode`. Change it in place or set a new\n"
          "image; if its size differs, set boxes and segmentations too.",
          nb::for_setter(nb::arg("value").none()))
      .def_prop_rw("boxes", &PythonSample::boxes, &PythonSample::set_boxes,
                   "(objects, 4) float32: x1 y1 x2 y2.")
      .def_prop_rw("labels", &PythonSample::labels, &PythonSample::set_labels,
                   "(objects,) int32: indices into `Flow.classes`.")
      .def_prop_rw("crowd", &PythonSample::crowd, &PythonSample::set_crowd,
                   "(objects,) bool: crowd regions.")
      .def_prop_rw(
          "segmentations", &PythonSample::segmentations, &PythonSample::set_segmentations,
          "One per object, as in `Batch.segmentations`; counts may be COCO's compressed string.")
      .def_prop_rw(
          "scale",
          [](const PythonSample& self) {
            return pair(self.sample().scale_x, self.sample().scale_y);
          },
          [](PythonSample& self, std::pair<float, float> scale) {
            self.sample().scale_x = scale.first;
            self.sample().scale_y = scale.second;
          },
          "Pixels of `image` per pixel of the file, in x and y.")
      .def_prop_ro(
          "random", &PythonSample::random,
          "A numpy.random.Generator that depends only on the seed, the epoch, the sample and\n"
          "the stage. Draw all random numbers from it, so that batches are the same for any\n"
          "number of threads and after a resume.");
}

}  // namespace millrace::python
