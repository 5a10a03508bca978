// The device that a process computes on, and the upload of batches to it.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <string>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/engine/dataflow.h"

namespace millrace {

/// Opens the device of a kind in device_kinds() for the process `local_rank` of the host: "cpu",
/// the device of a plug-in, or "cuda", which becomes the calling thread's current device. If there
/// are several devices, gpu_of_rank selects one. Throws ConfigError naming what is missing.
at::Device open_device(const std::string& kind, std::int64_t local_rank);

/// Makes later batches use memory that the device can copy fast.
void make_batches_for(at::Device device);

/// Returns a flow whose batches have their pixels on the device or are being copied to it: while
/// the model processes one batch, the next is copied on a separate stream. For the CPU, returns
/// `flow` itself.
std::unique_ptr<DataFlow<Batch>> upload_ahead(std::unique_ptr<DataFlow<Batch>> flow,
                                              at::Device device);

}  // namespace millrace
