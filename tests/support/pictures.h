// Encodes and decodes image files for tests.
#pragma once

#include <png.h>
#include <turbojpeg.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <opencv2/imgproc.hpp>
#include <string>

#include "millrace/base/files.h"
#include "millrace/coco/picture/encode.h"

namespace millrace::testing {

/// Encodes an image, 8-bit BGR or grey, as .jpg or .png.
inline std::string encoded(const std::string& extension, const cv::Mat& bgr, int quality = 95) {
  cv::Mat rgb;
  cv::cvtColor(bgr, rgb, bgr.channels() == 1 ? cv::COLOR_GRAY2RGB : cv::COLOR_BGR2RGB);
  return extension == ".png" ? coco::encode_png(rgb) : coco::encode_jpeg(rgb, quality);
}

inline void save_picture(const std::filesystem::path& file, const cv::Mat& bgr, int quality = 95) {
  std::ofstream(file, std::ios::binary) << encoded(file.extension().string(), bgr, quality);
}

/// Decodes a JPEG or PNG file to 8-bit BGR; returns an empty matrix if that fails.
inline cv::Mat picture_in(const std::filesystem::path& file) {
  const auto bytes = read_file(file);
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  png_image png = {};
  png.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_memory(&png, data, bytes.size()) != 0) {
    png.format = PNG_FORMAT_BGR;
    cv::Mat image(static_cast<int>(png.height), static_cast<int>(png.width), CV_8UC3);
    return png_image_finish_read(&png, nullptr, image.data, 0, nullptr) != 0 ? image : cv::Mat();
  }
  const std::unique_ptr<void, int (*)(tjhandle)> decoder(tjInitDecompress(), tjDestroy);
  int width = 0, height = 0, subsampling = 0, colours = 0;
  if (tjDecompressHeader3(decoder.get(), data, bytes.size(), &width, &height, &subsampling,
                          &colours) != 0)
    return {};
  cv::Mat image(height, width, CV_8UC3);
  const bool done = tjDecompress2(decoder.get(), data, bytes.size(), image.data, width, 0, height,
                                  TJPF_BGR, TJFLAG_ACCURATEDCT) == 0;
  return done ? image : cv::Mat();
}

}  // namespace millrace::testing
