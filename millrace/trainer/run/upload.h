// Copies of batches to the device while the step before them is taken.
#pragma once

#include <c10/core/Device.h>

#include <memory>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/engine/dataflow.h"

namespace millrace {

/// A flow whose batches have their pixels on the device already, or on the way there: while the
/// model works on one batch, the next is copied on a stream of its own as soon as it is there. The
/// flow itself for the CPU.
std::unique_ptr<DataFlow<Batch>> upload_ahead(std::unique_ptr<DataFlow<Batch>> flow,
                                              at::Device device);

}  // namespace millrace
