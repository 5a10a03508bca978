// Detects with a trained model in any program: find_package(millrace COMPONENTS predict). The same
// answers as `trainer predict` and training's evaluation give, to the byte.
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

/// An image file: JPEG, PNG, WebP or TIFF. Decoded whole, turned as its EXIF says.
struct ImageFile {
  std::filesystem::path path;
};

/// The bytes of such a file, borrowed.
struct ImageBytes {
  std::string_view bytes;
};

enum class PixelOrder { rgb, bgr };

/// Pixels, borrowed: rows of three bytes a pixel, from the top.
struct ImagePixels {
  std::span<const std::uint8_t> bytes;
  std::int32_t width = 0, height = 0;
  std::size_t stride = 0;  // bytes from row to row; 0: 3 * width
  PixelOrder order = PixelOrder::rgb;
};

using PredictorImage = std::variant<ImageFile, ImageBytes, ImagePixels>;

/// What was found in an image.
struct Prediction {
  std::int32_t width = 0, height = 0;   // of the image, pixels
  std::vector<DetectedObject> objects;  // best score first
};

/// Type of convolutions and matrix products.
enum class Precision { fp32, bf16 };

inline constexpr std::int64_t kMostThreads = 4096;

struct PredictorOptions {
  std::int64_t threads = 0;  // of the maths; 0: as many as the process may use
  Precision precision = Precision::fp32;
};

/// A model, ready to detect. Any thread may call it; calls of several threads wait for each other.
/// The number of threads is one of the whole process: that of the last call.
class Predictor {
 public:
  /// `model`: a model.safetensors that Millrace wrote, a checkpoint's folder or a run's. Throws
  /// Error naming the file and what is wrong with it: missing, damaged, without a model card, or of
  /// a detector that this library does not have.
  explicit Predictor(const std::filesystem::path& model, const PredictorOptions& options = {});
  Predictor(Predictor&&) noexcept;
  Predictor& operator=(Predictor&&) noexcept;
  ~Predictor();

  /// Names in label order.
  const std::vector<std::string>& classes() const;
  /// The ids that the classes had in the annotations, in label order.
  const std::vector<std::int64_t>& category_ids() const;
  /// False: objects have no masks.
  bool gives_masks() const;

  /// Throws DataError naming the image that cannot be read, such as "image 2 of 3: ..." for one
  /// without a name; Error for a model that fails.
  Prediction predict(const PredictorImage& image) const;

  /// The same of several at once, to the byte, in their order. All are held in memory.
  std::vector<Prediction> predict(std::span<const PredictorImage> images) const;

  /// height x width bytes, row by row, 1 inside the mask. Throws Error for runs that do not add up
  /// to that.
  static std::vector<std::uint8_t> bitmap(const coco::Rle& mask);

 private:
  struct Model;
  std::unique_ptr<Model> model_;
};

}  // namespace millrace
