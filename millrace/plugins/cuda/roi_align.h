// ROIAlign on the GPU, all levels of a pyramid in one call. T: float, __half or __nv_bfloat16; sums
// are in float.
#pragma once

#include "millrace/plugins/cuda/roi_align_math.h"

namespace millrace::cuda {

/// output: (R, rows, columns, C).
template <typename T>
void roi_align_forward(const Pyramid<const T>& pyramid, const Regions& regions,
                       const RoiAlignSwitches& switches, T* output, Stream stream);

/// grad_output: (R, rows, columns, C). Writes every pixel of `gradients`. The same bits each time.
template <typename T>
void roi_align_backward(const T* grad_output, const Regions& regions,
                        const RoiAlignSwitches& switches, const Pyramid<T>& gradients,
                        Stream stream);

}  // namespace millrace::cuda
