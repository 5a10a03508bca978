// The pixels of batches on the model's device.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <cstddef>
#include <memory>

#include "millrace/dataflow/detection/pad.h"
#include "millrace/dataflow/detection/sample.h"

namespace millrace {

/// Bytes (N, H, W, 3) on a device, perhaps still being copied.
struct DevicePixels {
  std::shared_ptr<std::uint8_t[]> source;  // of the copy; lives until that is done
  at::Tensor pixels;
  std::shared_ptr<c10::Event> copied;  // nullptr: made by the stream that uses them

  /// Waits for the copy; a device that has met a fault is not asked for its memory back.
  ~DevicePixels();
};

/// Copies a batch's pixels on a stream of their own.
std::shared_ptr<const DevicePixels> copied_ahead(const Batch& batch, c10::Stream copies);

/// A batch's pixels, (N, H, W, 3) bytes on the device: Batch::on_device, else copied now. On the
/// CPU the batch's own memory.
at::Tensor pixels_on(const Batch& batch, at::Device device);

/// Those of images `first` .. `first + count` of a batch, without a copy.
std::shared_ptr<const DevicePixels> pixels_of_images(const DevicePixels& whole, std::size_t first,
                                                     std::size_t count);

/// Gives a part of a batch its pixels from those of the whole on its device, if any.
void take_pixels_of(const Batch& whole, BatchPart& part);

}  // namespace millrace
