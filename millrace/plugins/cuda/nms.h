// Non-maximum suppression of many groups of boxes at once on the GPU, without a word to the host.
#pragma once

#include <cstddef>
#include <cstdint>

#include "millrace/plugins/cuda/host_device.h"

namespace millrace::cuda {

/// Bytes of scratch memory for groups of at most `most` boxes, `count` boxes in all.
std::size_t nms_scratch_bytes(std::int64_t count, std::int64_t most);

/// boxes (count, 4): group after group, best first within each; `begins` (groups + 1) says where a
/// group begins, in device memory; no group has more than `most` boxes. Boxes with `valid` 0
/// neither stay nor suppress. keep[i] is 1 where no better box of the group that stays overlaps it
/// by more than `threshold`. The same bits as the CPU's.
void nms(const float* boxes, const std::uint8_t* valid, const std::int64_t* begins,
         std::int64_t groups, std::int64_t count, std::int64_t most, float threshold, float offset,
         void* scratch, std::uint8_t* keep, Stream stream);

}  // namespace millrace::cuda
