// The device that a process computes on, and how batches come to it.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <string>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/engine/dataflow.h"

namespace millrace {

/// "cpu"; or "cuda", the GPU of the host's process `local_rank`, which becomes the calling thread's
/// current one. Throws ConfigError where there is none, saying what is missing.
at::Device open_device(const std::string& kind, std::int64_t local_rank);

/// Takes the memory of batches that are made from now on from where a device copies fast.
void make_batches_for(at::Device device);

/// A flow whose batches have their pixels on the device already, or on the way there: while the
/// model works on one batch, the next is copied on a stream of its own as soon as it is there. The
/// flow itself for the CPU.
std::unique_ptr<DataFlow<Batch>> upload_ahead(std::unique_ptr<DataFlow<Batch>> flow,
                                              at::Device device);

}  // namespace millrace
