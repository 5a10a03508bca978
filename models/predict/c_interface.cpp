// Implements millrace_predict.h with Predictor. No exception leaves these functions.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/base/word_wrap.h"
#include "millrace/models/predict/millrace_predict.h"
#include "millrace/models/predict/predictor.h"

namespace millrace {
namespace {

constexpr std::size_t kMostImages = 65536;  // of one call

/// An invalid argument.
struct BadArgument : Error {
  using Error::Error;
};

struct Result {
  Prediction found;
  std::vector<std::string> counts;  // encoded masks by object, once requested
  std::mutex asks;
};

/// Maps handles of one type to values. Handles are numbers cast to pointers and never reused, so
/// that closed or invalid ones are detected. Thread-safe.
template <class Handle, class T>
class Handles {
 public:
  Handle* add(std::shared_ptr<T> value) {
    const std::scoped_lock lock(mutex_);
    open_.emplace(++last_, std::move(value));
    return reinterpret_cast<Handle*>(last_);
  }

  /// Returns nullptr if the handle is not open.
  std::shared_ptr<T> find(const Handle* handle) const {
    const std::scoped_lock lock(mutex_);
    const auto found = open_.find(reinterpret_cast<std::uintptr_t>(handle));
    return found == open_.end() ? nullptr : found->second;
  }

  /// Removes a handle and returns its value; nullptr if it was not open.
  std::shared_ptr<T> take(const Handle* handle) {
    const std::scoped_lock lock(mutex_);
    auto found = open_.extract(reinterpret_cast<std::uintptr_t>(handle));
    return found ? std::move(found.mapped()) : nullptr;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::uintptr_t, std::shared_ptr<T>> open_;
  std::uintptr_t last_ = 0;
};

// Never destroyed: threads may call while the process exits.
Handles<millrace_predictor, const Predictor>& predictors() {
  static auto* all = new Handles<millrace_predictor, const Predictor>;
  return *all;
}
Handles<millrace_result, Result>& results() {
  static auto* all = new Handles<millrace_result, Result>;
  return *all;
}

std::string& last_error() {
  static thread_local std::string text;
  return text;
}

/// Stores the message of the current exception; returns `status`.
millrace_status failed(millrace_status status) noexcept {
  try {
    last_error() = printable(what_is_thrown());
  } catch (...) {
    last_error().clear();  // out of memory for a message
  }
  return status;
}

/// Calls `work` and converts an exception to a status: `other` for an Error without a status of its
/// own.
template <class Work>
millrace_status status_of(const Work& work, millrace_status other = MILLRACE_FAILED) noexcept {
  try {
    work();
    return MILLRACE_OK;
  } catch (const BadArgument&) {
    return failed(MILLRACE_BAD_ARGUMENT);
  } catch (const DataError&) {
    return failed(MILLRACE_BAD_IMAGE);
  } catch (const Error&) {
    return failed(other);
  } catch (...) {
    return failed(MILLRACE_FAILED);
  }
}

template <class T>
T& given(T* pointer, const char* name) {
  if (!pointer) throw BadArgument(fmt::format("{} is NULL", name));
  return *pointer;
}

template <class Handle, class T>
std::shared_ptr<T> open(std::shared_ptr<T> found, const Handle* handle, const char* name) {
  given(handle, name);
  if (!found)
    throw BadArgument(
        fmt::format("{} is not an open handle: it was closed, or never opened", name));
  return found;
}

std::shared_ptr<const Predictor> predictor_of(const millrace_predictor* handle) {
  return open(predictors().find(handle), handle, "predictor");
}
std::shared_ptr<Result> result_of(const millrace_result* handle) {
  return open(results().find(handle), handle, "result");
}

/// Returns the index; throws BadArgument unless 0 <= index < count.
std::size_t place(std::int32_t index, std::size_t count, const char* name) {
  if (index < 0 || static_cast<std::size_t>(index) >= count)
    throw BadArgument(
        fmt::format("{} = {} is out of range: there are {}, counted from 0", name, index, count));
  return static_cast<std::size_t>(index);
}

const DetectedObject& object_at(const Result& result, std::int32_t index) {
  return result.found.objects[place(index, result.found.objects.size(), "index")];
}

const coco::Rle& mask_at(const Result& result, std::int32_t index) {
  const auto& mask = object_at(result, index).mask;
  if (mask.counts.empty()) throw BadArgument("the model does not predict masks");
  return mask;
}

PredictorImage image_of(const millrace_image& image) {
  const auto* data = static_cast<const char*>(image.data);
  if (!data) throw BadArgument("data of an image is NULL");
  switch (image.kind) {
    case MILLRACE_FILE:
      return ImageFile{data};
    case MILLRACE_BYTES:
      return ImageBytes{{data, image.size}};
    case MILLRACE_RGB:
    case MILLRACE_BGR:
      return ImagePixels{.bytes = {reinterpret_cast<const std::uint8_t*>(data), image.size},
                         .width = image.width,
                         .height = image.height,
                         .stride = image.stride,
                         .order = image.kind == MILLRACE_RGB ? PixelOrder::rgb : PixelOrder::bgr};
    default:
      throw BadArgument(fmt::format("{} is not a kind of image", image.kind));
  }
}

void detect(const Predictor& predictor, std::span<const PredictorImage> images,
            std::span<millrace_result*> handles) {
  auto found = predictor.predict(images);
  for (std::size_t i = 0; i < found.size(); ++i) {
    auto result = std::make_shared<Result>();
    result->found = std::move(found[i]);
    handles[i] = results().add(std::move(result));
  }
}

}  // namespace
}  // namespace millrace

using namespace millrace;

const char* millrace_predict_error() { return last_error().c_str(); }

millrace_status millrace_predict_open(const char* model, const millrace_predict_options* options,
                                      millrace_predictor** predictor) {
  return status_of(
      [&] {
        given(predictor, "predictor") = nullptr;
        given(model, "model");
        PredictorOptions chosen;
        if (options) {
          if (options->threads < 0 || options->threads > kMostThreads)
            throw BadArgument(fmt::format("threads = {} is out of range (0 .. {})",
                                          options->threads, kMostThreads));
          if (options->bf16 != 0 && options->bf16 != 1)
            throw BadArgument(fmt::format("bf16 = {} is neither 0 nor 1", options->bf16));
          chosen.threads = options->threads;
          chosen.precision = options->bf16 == 1 ? Precision::bf16 : Precision::fp32;
        }
        *predictor = predictors().add(std::make_shared<const Predictor>(model, chosen));
      },
      MILLRACE_BAD_MODEL);
}

millrace_status millrace_predict_close(millrace_predictor* predictor) {
  return status_of([&] { open(predictors().take(predictor), predictor, "predictor"); });
}

std::int32_t millrace_predict_class_count(const millrace_predictor* predictor) {
  std::int32_t count = -1;
  status_of([&] { count = static_cast<std::int32_t>(predictor_of(predictor)->classes().size()); });
  return count;
}

const char* millrace_predict_class_name(const millrace_predictor* predictor, std::int32_t label) {
  const char* name = nullptr;
  status_of([&] {
    const auto& names = predictor_of(predictor)->classes();
    name = names[place(label, names.size(), "label")].c_str();
  });
  return name;
}

millrace_status millrace_predict_file(const millrace_predictor* predictor, const char* image,
                                      millrace_result** result) {
  return status_of([&] {
    given(result, "result") = nullptr;
    given(image, "image");
    const PredictorImage file = ImageFile{image};
    detect(*predictor_of(predictor), {&file, 1}, {result, 1});
  });
}

millrace_status millrace_predict_images(const millrace_predictor* predictor,
                                        const millrace_image* images, std::size_t count,
                                        millrace_result** results) {
  return status_of([&] {
    const auto model = predictor_of(predictor);
    if (count == 0) return;
    if (count > kMostImages)
      throw BadArgument(fmt::format("count = {} is out of range (0 .. {})", count, kMostImages));
    given(results, "results");
    given(images, "images");
    const std::span handles(results, count);
    std::ranges::fill(handles, nullptr);
    std::vector<PredictorImage> all;
    for (const auto& image : std::span(images, count)) all.push_back(image_of(image));
    detect(*model, all, handles);
  });
}

std::int32_t millrace_result_count(const millrace_result* result) {
  std::int32_t count = -1;
  status_of([&] { count = static_cast<std::int32_t>(result_of(result)->found.objects.size()); });
  return count;
}

millrace_status millrace_result_size(const millrace_result* result, std::int32_t* width,
                                     std::int32_t* height) {
  return status_of([&] {
    const auto& found = result_of(result)->found;
    given(width, "width") = found.width;
    given(height, "height") = found.height;
  });
}

millrace_status millrace_result_object(const millrace_result* result, std::int32_t index,
                                       millrace_object* object) {
  return status_of([&] {
    const auto held = result_of(result);
    const auto& found = object_at(*held, index);
    const auto& [x1, y1, x2, y2] = found.box;
    given(object, "object") = {
        x1, y1, x2, y2, found.score, found.label, found.mask.counts.empty() ? 0 : 1};
  });
}

millrace_status millrace_result_bitmap(const millrace_result* result, std::int32_t index,
                                       std::uint8_t* bitmap, std::size_t size) {
  return status_of([&] {
    const auto held = result_of(result);
    const auto& mask = mask_at(*held, index);
    given(bitmap, "bitmap");
    if (const auto wanted = std::size_t{mask.height} * mask.width; size != wanted)
      throw BadArgument(fmt::format("size = {}, but the bitmap of {} x {} pixels has {} bytes",
                                    size, mask.width, mask.height, wanted));
    std::ranges::copy(Predictor::bitmap(mask), bitmap);
  });
}

const char* millrace_result_counts(const millrace_result* result, std::int32_t index) {
  const char* counts = nullptr;
  status_of([&] {
    const auto held = result_of(result);
    const auto& mask = mask_at(*held, index);
    const std::scoped_lock lock(held->asks);
    held->counts.resize(held->found.objects.size());
    auto& text = held->counts[static_cast<std::size_t>(index)];
    if (text.empty()) text = coco::encode_counts(mask);
    counts = text.c_str();
  });
  return counts;
}

millrace_status millrace_result_close(millrace_result* result) {
  return status_of([&] { open(results().take(result), result, "result"); });
}
