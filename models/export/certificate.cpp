#include "millrace/models/export/certificate.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/sha256.h"
#include "millrace/coco/masks/masks.h"
#include "millrace/dataflow/detection/test_time.h"
#include "millrace/models/weights/formats.h"
#include "millrace/models/weights/safetensors.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// Makes a batch of photos for evaluation. If padded, the resized images count as originals, as for
/// a caller of the file.
Batch batch_of(const std::vector<NamedPixels>& photos, const DataOptions& data, bool padded) {
  const TestTime how(data);
  std::vector<Sample> samples;
  for (const auto& photo : photos) {
    Sample sample{.image_id = std::ssize(samples) + 1,
                  .path = photo.name,
                  .width = photo.pixels.cols,
                  .height = photo.pixels.rows,
                  .image = photo.pixels.clone()};
    samples.push_back(how.resized(std::move(sample)));
  }
  auto batch = how.pad(std::move(samples));
  if (!padded) return batch;
  batch.divisor = 0;  // `detect` keeps the padding
  for (auto& image : batch.images) {
    image.original_width = image.width, image.original_height = image.height;
    image.scale_x = image.scale_y = 1;
  }
  return batch;
}

at::Tensor bytes_of(const std::uint8_t* data, at::IntArrayRef shape) {
  auto tensor = at::empty(shape, at::kByte);
  std::copy_n(data, tensor.numel(), tensor.mutable_data_ptr<std::uint8_t>());
  return tensor;
}

/// Returns bitmaps (D, height, width) of all objects, with eight pixels in a byte.
at::Tensor packed_masks(const std::vector<const DetectedObject*>& objects, std::int64_t height,
                        std::int64_t width) {
  const auto row = (width + 7) / 8;
  auto packed = at::zeros({std::ssize(objects), height, row}, at::kByte);
  auto* out = packed.mutable_data_ptr<std::uint8_t>();
  for (const auto* object : objects) {
    const auto& mask = object->mask;
    std::vector<std::uint8_t> bitmap(std::size_t{mask.height} * mask.width);
    coco::decode(mask, bitmap.data());
    for (std::size_t y = 0; y < mask.height; ++y)
      for (std::size_t x = 0; x < mask.width; ++x)
        if (bitmap[y * mask.width + x])
          out[y * static_cast<std::size_t>(row) + x / 8] |=
              static_cast<std::uint8_t>(0x80U >> x % 8);
    out += height * row;
  }
  return packed;
}

void add_outputs(NamedTensors& tensors, const std::string& name,
                 const std::vector<std::vector<DetectedObject>>& found, const Batch& batch,
                 bool masks, bool padded) {
  std::vector<const DetectedObject*> objects;
  std::vector<float> boxes, scores;
  std::vector<std::int64_t> labels, counts;
  for (const auto& of_image : found) {
    counts.push_back(std::ssize(of_image));
    for (const auto& object : of_image) {
      objects.push_back(&object);
      boxes.insert(boxes.end(), {object.box.x1, object.box.y1, object.box.x2, object.box.y2});
      scores.push_back(object.score);
      labels.push_back(object.label);
    }
  }
  tensors.emplace_back(name + "boxes", at::tensor(boxes, at::kFloat).view({-1, 4}));
  tensors.emplace_back(name + "scores", at::tensor(scores, at::kFloat));
  tensors.emplace_back(name + "labels", at::tensor(labels, at::kLong));
  if (padded) tensors.emplace_back(name + "counts", at::tensor(counts, at::kLong));
  if (!masks) return;
  std::int32_t height = 0, width = 0;
  for (const auto& image : batch.images) {
    height = std::max(height, image.original_height);
    width = std::max(width, image.original_width);
  }
  tensors.emplace_back(name + "masks", packed_masks(objects, height, width));
}

/// Returns digests by file name.
Json digests_of(const std::vector<fs::path>& files) {
  Json result = Json::object();
  for (const auto& file : files) {
    const auto bytes = map_file(file);
    result[file.filename().string()] =
        sha256({reinterpret_cast<const char*>(bytes.data.get()), bytes.size});
  }
  return result;
}

}  // namespace

CertificateFiles::CertificateFiles(fs::path model) {
  const auto stem = model.replace_extension();
  text = stem, tensors = stem;
  text += ".certificate.json", tensors += ".certificate.safetensors";
}

void write_certificate(Detector& detector, const ModelCard& card, const DataOptions& data,
                       const ExportOptions& options, const std::vector<NamedPixels>& photos,
                       const fs::path& weights, const std::vector<fs::path>& files) {
  const CertificateFiles own(files.at(0));
  const std::size_t together = options.padded ? 2 : 1;
  NamedTensors tensors;
  auto cases = Json::array();
  for (std::size_t first = 0; first < photos.size(); first += together) {
    const std::vector some(
        photos.begin() + static_cast<std::ptrdiff_t>(first),
        photos.begin() + static_cast<std::ptrdiff_t>(std::min(photos.size(), first + together)));
    const auto batch = batch_of(some, data, options.padded);
    const auto name = fmt::format("{}.", cases.size());
    if (options.padded) {
      std::vector<std::int64_t> sizes;
      for (const auto& image : batch.images) sizes.insert(sizes.end(), {image.height, image.width});
      tensors.emplace_back(
          name + "images",
          bytes_of(batch.pixels.get(), {std::ssize(batch.images), batch.height, batch.width, 3}));
      tensors.emplace_back(name + "sizes", at::tensor(sizes, at::kLong).view({-1, 2}));
    } else {
      const auto whole = some[0].pixels.clone();  // without gaps between rows
      tensors.emplace_back(name + "image", bytes_of(whole.data, {whole.rows, whole.cols, 3}));
    }
    const auto found = detector.detect(batch);
    add_outputs(tensors, name, found, batch, detector.gives_masks(), options.padded);
    auto names = Json::array();
    std::size_t objects = 0;
    for (const auto& photo : some) names.push_back(photo.name);
    for (const auto& one : found) objects += one.size();
    cases.push_back({{"photos", names}, {"objects", objects}});
  }
  write_safetensors(own.tensors, tensors);

  const auto masks = !detector.gives_masks() ? "none" : options.pasted ? "pasted" : "boxes";
  const auto* paste = card.model.find_path("mask.paste");
  const auto* paste_text = paste ? std::get_if<std::string>(&paste->data) : nullptr;
  const Json text{{"millrace_certificate", 1},
                  {"files", digests_of(files)},
                  {"tensors", digests_of({own.tensors})},
                  {"made_from",
                   {{"millrace", MILLRACE_VERSION},
                    {"detector", detector.title()},
                    {"weights", digests_of({weight_file(weights)})},
                    {"stored_as", options.storage == onnx::Storage::fp16 ? "fp16" : "fp32"},
                    {"classes", card.classes}}},
                  // The maximum differences of a runtime's outputs: in pixels of the image,
                  // absolute, and as a share of the masks' pixels.
                  {"allowed", {{"boxes", 1e-3}, {"scores", 1e-5}, {"masks", 1e-4}}},
                  {"masks", masks},
                  {"paste", paste_text ? *paste_text : "grid"},
                  {"cases", cases}};
  write_file_atomically(own.text, text.dump(1) + "\n");
}

void check_certificate(const fs::path& model) {
  const CertificateFiles own(model);
  const auto text = Json::parse(read_file(own.text), nullptr, /*allow_exceptions=*/false);
  if (!text.is_object() || text.value("millrace_certificate", Json()) != Json(1))
    throw Error(own.text.string() + " is not a certificate that this version can read");
  for (const auto* part : {"files", "tensors"}) {
    if (!text.contains(part) || !text[part].is_object())
      throw Error(fmt::format("{} is damaged: '{}' is missing", own.text.string(), part));
    for (const auto& [name, digest] : text[part].items()) {
      if (name.empty() || name == "." || name == ".." || fs::path(name).filename() != name)
        throw Error(fmt::format("{} names '{}'; only names of files in its own folder are allowed",
                                own.text.string(), name));
      const auto file = model.parent_path() / name;
      if (digests_of({file}).front() != digest)
        throw Error(fmt::format(
            "{} is not the file for which {} was written: its digest differs; export again",
            file.string(), own.text.string()));
    }
  }
  if (!text["files"].contains(model.filename().string()))
    throw Error(fmt::format("{} was written for a file other than {}", own.text.string(),
                            model.filename().string()));
}

}  // namespace millrace
