// The pixels of batches on the model's device.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <cstddef>
#include <memory>

#include "millrace/dataflow/detection/pad.h"
#include "millrace/dataflow/detection/sample.h"

namespace millrace {

/// Bytes (N, H, W, 3) on a device. The copy may still be running.
struct DevicePixels {
  std::shared_ptr<std::uint8_t[]> source;  // the copy's source, kept alive until the copy is done
  at::Tensor pixels;
  std::shared_ptr<c10::Event> copied;  // nullptr = written by the stream that uses them

  /// Waits for the copy. After a fault of the device, its memory is not freed.
  ~DevicePixels();
};

/// Starts the copy of a batch's pixels on the stream `copies`.
std::shared_ptr<const DevicePixels> copied_ahead(const Batch& batch, c10::Stream copies);

/// Returns a batch's pixels as (N, H, W, 3) bytes on the device: Batch::on_device if present, else
/// a copy. On the CPU the batch's own memory.
at::Tensor pixels_on(const Batch& batch, at::Device device);

/// Returns the pixels of images first .. first + count - 1 of a batch, without a copy.
std::shared_ptr<const DevicePixels> pixels_of_images(const DevicePixels& whole, std::size_t first,
                                                     std::size_t count);

/// Gives a part of a batch its pixels from the whole batch's pixels on the device, if present.
void take_pixels_of(const Batch& whole, BatchPart& part);

}  // namespace millrace
