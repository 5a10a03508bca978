// Detects with a trained model in any program: find_package(millrace COMPONENTS predict). The
// results equal those of `trainer predict` and of the evaluation in training, to the byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/models/detector/detected_object.h"

namespace millrace {

/// An image file: JPEG, PNG, WebP or TIFF, decoded whole and rotated by its EXIF orientation.
struct ImageFile {
  std::filesystem::path path;
};

/// The bytes of an image file, borrowed.
struct ImageBytes {
  std::string_view bytes;
};

enum class PixelOrder { rgb, bgr };

/// Pixels, borrowed: rows from the top with three bytes per pixel.
struct ImagePixels {
  std::span<const std::uint8_t> bytes;
  std::int32_t width = 0, height = 0;
  std::size_t stride = 0;  // bytes from row to row; 0 = 3 * width
  PixelOrder order = PixelOrder::rgb;
};

using PredictorImage = std::variant<ImageFile, ImageBytes, ImagePixels>;

/// The detections in an image.
struct Prediction {
  std::int32_t width = 0, height = 0;   // size of the image in pixels
  std::vector<DetectedObject> objects;  // best score first
};

/// Type of convolutions and matrix products.
enum class Precision { fp32, bf16 };

inline constexpr std::int64_t kMostThreads = 4096;

struct PredictorOptions {
  std::int64_t threads = 0;  // compute threads; 0 = all CPUs available to the process
  Precision precision = Precision::fp32;
};

/// A model, ready to detect. Thread-safe; calls of several threads run one after the other. The
/// number of compute threads is a setting of the whole process: that of the last call applies.
class Predictor {
 public:
  /// Opens `model`: a model.safetensors written by Millrace, a checkpoint's folder or a run's.
  /// Throws Error naming the file and the problem: missing, damaged, without a model card, or of a
  /// detector that this library does not have.
  explicit Predictor(const std::filesystem::path& model, const PredictorOptions& options = {});
  Predictor(Predictor&&) noexcept;
  Predictor& operator=(Predictor&&) noexcept;
  ~Predictor();

  /// Names in label order.
  const std::vector<std::string>& classes() const;
  /// The category ids of the classes in the annotations, in label order.
  const std::vector<std::int64_t>& category_ids() const;
  /// Returns false if objects have no masks.
  bool gives_masks() const;

  /// Throws DataError naming the image if it cannot be read, e.g. "image 2 of 3: ..." for one
  /// without a name, and Error if the model fails.
  Prediction predict(const PredictorImage& image) const;

  /// Detects in several images at once, with the same bytes as one by one, in their order. All are
  /// held in memory.
  std::vector<Prediction> predict(std::span<const PredictorImage> images) const;

  /// Returns height x width bytes, row by row, 1 inside the mask. Throws Error if the mask's runs
  /// do not add up to that size.
  static std::vector<std::uint8_t> bitmap(const coco::Rle& mask);

 private:
  struct Model;
  std::unique_ptr<Model> model_;
};

}  // namespace millrace
