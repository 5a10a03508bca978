// The expected answers of an exported model: inputs, the detector's own outputs for them, and the
// tolerances of a runtime.
#pragma once

#include <filesystem>
#include <opencv2/core/mat.hpp>
#include <string>
#include <vector>

#include "millrace/models/detector/detector.h"
#include "millrace/models/export/export_model.h"

namespace millrace {

/// A test image of a certificate.
struct NamedPixels {
  std::string name;
  cv::Mat pixels;  // (H, W, 3) 8-bit RGB
};

/// The paths of the certificate of `model.onnx`: model.certificate.json and
/// model.certificate.safetensors.
struct CertificateFiles {
  explicit CertificateFiles(std::filesystem::path model);
  std::filesystem::path text, tensors;
};

/// Runs the detector on photos (if padded, on pairs of them) and writes the certificate of `files`,
/// the model first. Tensors are CASE.image, or CASE.images and CASE.sizes; CASE.boxes, CASE.scores,
/// CASE.labels, CASE.counts if padded, and CASE.masks: bitmaps over the whole image (D, H, W), each
/// byte holding eight pixels of a row with the first in its highest bit. Throws Error.
void write_certificate(Detector& detector, const ModelCard& card, const DataOptions& data,
                       const ExportOptions& options, const std::vector<NamedPixels>& photos,
                       const std::filesystem::path& weights,
                       const std::vector<std::filesystem::path>& files);

/// Checks that a model's files and its certificate were written together. Throws Error naming the
/// file that is missing or has changed.
void check_certificate(const std::filesystem::path& model);

}  // namespace millrace
