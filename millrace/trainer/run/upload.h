// The pixels of batches on the device of the model.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/engine/dataflow.h"

namespace millrace {

/// A batch's pixels, (N, H, W, 3) bytes on the device: those that `upload_ahead` has brought there, else copied now. On the
/// CPU they are the batch's own memory.
at::Tensor pixels_on(const Batch& batch, at::Device device);

/// A flow whose batches have their pixels on the device already, or on the way there: while the model works on one batch,
/// the next is copied on a stream of its own as soon as it is there. The flow itself for the CPU.
std::unique_ptr<DataFlow<Batch>> upload_ahead(std::unique_ptr<DataFlow<Batch>> flow,
                                              at::Device device);

}  // namespace millrace
