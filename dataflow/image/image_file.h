// Decodes image files to pixels.
#pragma once

#include <cstdint>
#include <filesystem>
#include <opencv2/core/mat.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/dataflow/image/image_head.h"

namespace millrace {

/// Thrown if the size of an image differs from its annotation.
struct WrongSize : DataError {
  using DataError::DataError;
};

/// Returns the image files of a folder (not of subfolders), by extension, sorted by name.
std::vector<std::filesystem::path> images_in(const std::filesystem::path& folder);

/// Returns the image rotated upright. REQUIRES: an EXIF orientation of 1 .. 8.
cv::Mat upright(const cv::Mat& image, int orientation);

/// Returns the bytes of an image file. Throws DataError with its name, also if it is too long to be
/// decoded.
std::string read_image_file(const std::string& file);
/// Throws DataError if an image file of this length cannot be decoded.
void check_image_bytes(std::uint64_t bytes, const std::string& file);

/// Decodes a file's bytes to (H, W, 3) 8-bit RGB: JPEG by TurboJPEG; PNG, WebP and TIFF by readers
/// that are opened on first use. Other formats are rejected, with the format in the message.
///
/// `annotated` is the size that the image must have; the image is rotated by its EXIF orientation
/// only if that gives this size, or always if `annotated` is nullopt. `strict` rejects JPEGs that
/// end too early; other damage is decoded as Pillow and OpenCV do. `enough` is a sufficient size: a
/// JPEG is decoded at a half, a quarter or an eighth of its size if that is at least `enough` and a
/// whole number of pixels.
///
/// Throws DataError with `file`, WrongSize if only the size is wrong. Also throws if the header
/// claims more pixels than `max_pixels` (0 = unlimited), than the file can contain or than fit into
/// memory. Thread-safe.
cv::Mat decode_rgb(std::string_view bytes, const std::string& file,
                   std::optional<cv::Size> annotated = {}, bool strict = true, cv::Size enough = {},
                   std::int64_t max_pixels = kMaxPixels);

/// Returns the size that `decode_rgb` gives a JPEG without `annotated`, mostly from its header
/// alone; nullopt for other files, whose pixels do not depend on `annotated`. Throws as
/// `decode_rgb`. Thread-safe.
std::optional<cv::Size> upright_size(std::string_view bytes, const std::string& file);

/// Checks the beginning of a file as `decode_rgb` does. Returns the EXIF orientation by which it is
/// rotated; nullopt for files other than JPEGs. Thread-safe.
std::optional<int> check_head(std::string_view bytes, const std::string& file, cv::Size annotated,
                              std::int64_t max_pixels = kMaxPixels);

}  // namespace millrace
