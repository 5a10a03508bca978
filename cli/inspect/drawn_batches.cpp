#include "millrace/cli/inspect/drawn_batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <opencv2/imgproc.hpp>

#include "millrace/base/errors.h"
#include "millrace/base/text.h"
#include "millrace/cli/inspect/split_gallery.h"
#include "millrace/coco/drawing/draw.h"
#include "millrace/dataflow/detection/geometry.h"

namespace millrace::cli {
namespace {

constexpr int kBatchThumbnail = 480;         // longer side, pixels
constexpr std::size_t kBatchBytes = 40'000;  // per thumbnail

/// Draws stripes over the part of a slot outside its image.
void hatch(cv::Mat3b slot, cv::Size image) {
  const int stripe = std::max(3, std::max(slot.cols, slot.rows) / 90);
  for (int y = 0; y < slot.rows; ++y)
    for (int x = y < image.height ? image.width : 0; x < slot.cols; ++x)
      slot(y, x) = (x + y) / stripe % 2 == 0 ? cv::Vec3b(96, 96, 104) : cv::Vec3b(60, 60, 66);
}

/// Returns image i with its padding, which is hatched.
cv::Mat slot_of(const Batch& batch, std::size_t i) {
  cv::Mat3b slot = batch.padded_image(i).clone();
  hatch(slot, {batch.images[i].width, batch.images[i].height});
  return slot;
}

std::vector<coco::Overlay> overlays_of(const Batch& batch, std::size_t i) {
  const auto& objects = batch.objects[i];
  const auto& image = batch.images[i];
  std::vector<coco::Overlay> overlays;
  for (std::size_t k = 0; k < objects.size(); ++k) {
    auto mask = rasterised(objects.segmentations[k], {image.width, image.height});
    if (!mask.counts.empty())
      mask = coco::window(mask, 0, 0, static_cast<std::uint32_t>(batch.height),
                          static_cast<std::uint32_t>(batch.width));
    overlays.push_back({.box = objects.boxes[k],
                        .label = objects.classes[k],
                        .crowd = objects.crowd[k] != 0,
                        .mask = std::move(mask)});
  }
  return overlays;
}

report::Picture picture_of(const Batch& batch, std::size_t i, std::int64_t number) {
  const auto& image = batch.images[i];
  const cv::Size slot(batch.width, batch.height);
  const auto own = std::int64_t{image.width} * image.height;
  const double padding = 1 - static_cast<double>(own) / slot.area();
  const auto crowds = std::ranges::count(batch.objects[i].crowd, 1);
  report::Picture picture{
      .title = fmt::format("batch {}, image {}", number, i),
      .caption =
          fmt::format("image {}: {} x {} pixels, {} x {} in the batch", image.image_id,
                      image.original_width, image.original_height, image.width, image.height),
      .width = slot.width,
      .height = slot.height,
      .jpeg = report::thumbnail(slot_of(batch, i), kBatchBytes, kBatchThumbnail),
      .shapes = shapes_of(batch.objects[i], report::outline_tolerance(slot, kBatchThumbnail)),
      .metrics = {{"objects", static_cast<double>(std::ssize(batch.objects[i].boxes) - crowds)},
                  {"% padding", 100 * padding}},
      .tags = {fmt::format("batch {}", number)}};
  if (crowds > 0) picture.tags.push_back("with a crowd");
  if (batch.objects[i].size() == 0) picture.tags.push_back("without an object");
  return picture;
}

}  // namespace

double DrawnBatches::padding_share() const {
  return pixels == 0 ? 0 : 1 - static_cast<double>(image_pixels) / static_cast<double>(pixels);
}

cv::Mat batch_sheet(const Batch& batch, const std::vector<std::string>& classes) {
  constexpr int kWidth = 1600, kGap = 6;  // pixels
  const auto count = static_cast<int>(batch.size());
  const int columns = std::clamp(static_cast<int>(std::ceil(std::sqrt(count))), 1, 4);
  const int rows = (count + columns - 1) / columns;
  std::vector<cv::Mat> cells;
  for (std::size_t i = 0; i < batch.size(); ++i)
    cells.push_back(coco::draw_objects(slot_of(batch, i), overlays_of(batch, i), classes));
  cv::Size cell = cells.front().size();
  if (const int most = (kWidth - (columns - 1) * kGap) / columns; cell.width > most)
    cell = {most, std::max(1, cell.height * most / cell.width)};
  cv::Mat3b sheet(rows * (cell.height + kGap) - kGap, columns * (cell.width + kGap) - kGap,
                  cv::Vec3b(24, 24, 28));
  for (int i = 0; i < count; ++i) {
    const cv::Point at(i % columns * (cell.width + kGap), i / columns * (cell.height + kGap));
    cv::resize(cells[static_cast<std::size_t>(i)], sheet(cv::Rect(at, cell)), cell, 0, 0,
               cv::INTER_AREA);
  }
  return sheet;
}

DrawnBatches draw_batches(DataFlow<Batch>& flow, const std::vector<std::string>& classes,
                          const BatchesWanted& wanted, const std::filesystem::path& folder) {
  DrawnBatches drawn;
  drawn.seen.classes = classes;
  for (; drawn.batches < wanted.counted; ++drawn.batches) {
    const auto delivery = flow.next();
    if (!delivery) break;
    const auto& batch = delivery->value;
    drawn.pixels += batch.size() * static_cast<std::uint64_t>(batch.height) *
                    static_cast<std::uint64_t>(batch.width);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const auto& image = batch.images[i];
      drawn.image_pixels +=
          static_cast<std::uint64_t>(image.width) * static_cast<std::uint64_t>(image.height);
      add_image(drawn.seen,
                {.image_id = image.image_id,
                 .original = {image.original_width, image.original_height},
                 .seen = {image.width, image.height}},
                batch.objects[i]);
      if (drawn.batches < wanted.drawn && drawn.pictures.size() < DrawnBatches::kMostShown)
        drawn.pictures.push_back(picture_of(batch, i, drawn.batches));
    }
    if (drawn.batches >= wanted.drawn) continue;
    drawn.files.push_back(folder / fmt::format("batch-{}.png", drawn.batches));
    coco::write_picture(drawn.files.back(), batch_sheet(batch, classes));
  }
  const auto report = flow.report();
  drawn.skipped = report.skipped;
  drawn.skipped_reasons = report.skipped_reasons;
  if (drawn.batches == 0) throw Error("the data set yields no batch");
  return drawn;
}

}  // namespace millrace::cli
