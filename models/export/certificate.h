// What an exported model must answer: inputs, the detector's own outputs for them, and how far a
// runtime may be from these.
#pragma once

#include <filesystem>
#include <opencv2/core/mat.hpp>
#include <string>
#include <vector>

#include "millrace/models/detector/detector.h"
#include "millrace/models/export/export_model.h"

namespace millrace {

/// An image to run the model on.
struct NamedPixels {
  std::string name;
  cv::Mat pixels;  // (H, W, 3) 8-bit RGB
};

/// The largest differences allowed.
struct Tolerances {
  double boxes = 1e-3;   // pixels of the image
  double scores = 1e-5;  // absolute
  double masks = 1e-4;   // pixels that differ, per pixel of the masks
};

/// The two files of the certificate of `model.onnx`: model.certificate.json and
/// model.certificate.safetensors.
struct CertificateFiles {
  explicit CertificateFiles(std::filesystem::path model);
  std::filesystem::path text, tensors;
};

/// Runs the detector on photos (padded: on pairs of them) and writes the certificate of `files`,
/// the model first. Tensors are CASE.image, or CASE.images and CASE.sizes; CASE.boxes, CASE.scores,
/// CASE.labels, CASE.counts if padded, and CASE.masks: bitmaps over the whole image (D, H, W) of
/// which eight pixels of a row make a byte, the first in its highest bit. Throws Error.
void write_certificate(Detector& detector, const ModelCard& card, const DataOptions& data,
                       const ExportOptions& options, const std::vector<NamedPixels>& photos,
                       const std::filesystem::path& weights,
                       const std::vector<std::filesystem::path>& files);

/// Checks that a model's files and its certificate are those that were written together. Throws
/// Error naming what is missing or has changed.
void check_certificate(const std::filesystem::path& model);

}  // namespace millrace
