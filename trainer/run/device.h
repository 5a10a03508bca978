// The device that a process computes on, and how batches come to it.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <string>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/engine/dataflow.h"

namespace millrace {

/// The device of one of device_kinds(), as the host's process `local_rank` uses it: "cpu"; that of
/// a plug-in; or "cuda", made the calling thread's current one. Of several devices it is that of
/// the process (gpu_of_rank). Throws ConfigError saying what is missing.
at::Device open_device(const std::string& kind, std::int64_t local_rank);

/// From now on batches are made in memory that the device copies fast.
void make_batches_for(at::Device device);

/// A flow whose batches have their pixels on the device, or on the way there: while the model works
/// on one batch, the next is copied on a stream of its own. For the CPU the flow itself.
std::unique_ptr<DataFlow<Batch>> upload_ahead(std::unique_ptr<DataFlow<Batch>> flow,
                                              at::Device device);

}  // namespace millrace
