#include "millrace/models/detector/device_pixels.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/stack.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace millrace {
namespace {

at::Tensor as_tensor(const Batch& batch) {
  const auto count = static_cast<std::int64_t>(batch.size());
  return at::from_blob(batch.pixels.get(), {count, batch.height, batch.width, 3}, at::kByte);
}

}  // namespace

DevicePixels::~DevicePixels() {
  try {
    if (copied && !copied->query()) copied->synchronize();
  } catch (...) {
    // The device has a fault, which its next call reports. Freeing memory would throw again here,
    // in a destructor, and hide the training's own message, so the memory is leaked.
    static_cast<void>(pixels.unsafeReleaseTensorImpl());
  }
}

std::shared_ptr<const DevicePixels> copied_ahead(const Batch& batch, c10::Stream copies) {
  const c10::StreamGuard on(copies);
  auto result = std::make_shared<DevicePixels>();
  result->source = batch.pixels;
  result->copied = std::make_shared<c10::Event>(copies.device_type());
  result->pixels = as_tensor(batch).to(copies.device(), at::kByte, /*non_blocking=*/true);
  result->copied->record(copies);
  return result;
}

at::Tensor pixels_on(const Batch& batch, at::Device device) {
  if (device.is_cpu()) return as_tensor(batch);
  if (!batch.on_device) return as_tensor(batch).to(device);
  const auto& [source, pixels, copied] = *batch.on_device;
  if (!copied) return pixels;
  const auto* devices = c10::impl::getDeviceGuardImpl(device.type());
  const auto stream = devices->getStream(pixels.device());
  copied->block(stream);
  devices->recordDataPtrOnStream(pixels.storage().data_ptr(), stream);
  return pixels;
}

std::shared_ptr<const DevicePixels> pixels_of_images(const DevicePixels& whole, std::size_t first,
                                                     std::size_t count) {
  auto result = std::make_shared<DevicePixels>();
  result->source = whole.source;
  result->pixels =
      whole.pixels.narrow(0, static_cast<std::int64_t>(first), static_cast<std::int64_t>(count));
  result->copied = whole.copied;
  return result;
}

void take_pixels_of(const Batch& whole, BatchPart& part) {
  auto& [batch, places] = part;
  if (!whole.on_device || batch.on_device) return;
  const auto pixels = pixels_on(whole, whole.on_device->pixels.device());
  std::vector<at::Tensor> images;
  for (const auto place : places)
    images.push_back(pixels[static_cast<std::int64_t>(place)]
                         .narrow(0, 0, batch.height)
                         .narrow(1, 0, batch.width));
  auto result = std::make_shared<DevicePixels>();
  result->pixels = at::stack(images);
  batch.on_device = std::move(result);
}

}  // namespace millrace
