// The pixels of batches on the device of the model.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <memory>
#include <vector>

#include "millrace/dataflow/detection/batch_padding.h"
#include "millrace/dataflow/detection/sample.h"

namespace millrace {

/// Bytes (N, H, W, 3) on a device, or on the way there.
struct DevicePixels {
  std::shared_ptr<std::uint8_t[]> source;  // of the copy; not used again before that is over
  at::Tensor pixels;
  std::shared_ptr<c10::Event> copied;  // nullptr: the stream that uses them has made them

  ~DevicePixels();
};

/// Copies a batch's pixels on a stream of their own.
std::shared_ptr<const DevicePixels> copied_ahead(const Batch& batch, c10::Stream copies);

/// A batch's pixels, (N, H, W, 3) bytes on the device: those that are there already
/// (Batch::on_device), else copied now. On the CPU they are the batch's own memory.
at::Tensor pixels_on(const Batch& batch, at::Device device);

/// Gives a part of a batch its pixels from those that the whole has on its device, if any.
void take_pixels_of(const Batch& whole, BatchPart& part);

}  // namespace millrace
