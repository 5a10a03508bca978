// Counting labels and finding those of given ranks, for drawing what is trained on: see
// millrace/models/ops/sampling.h.
#pragma once

#include <cstdint>

#include "millrace/plugins/cuda/host_device.h"

namespace millrace::cuda {

constexpr int kLabelChunk = 1024;  // labels counted together

/// The place of the label `value` of rank `rank` (below how many there are) among `count` labels;
/// `counts`: how many of them each chunk has, two apart.
MILLRACE_HOST_DEVICE inline std::int64_t ranked_label(const std::int8_t* label, std::int64_t count,
                                                      const std::int32_t* counts, std::int8_t value,
                                                      std::int64_t rank) {
  std::int64_t place = 0;
  for (; rank >= *counts; counts += 2, place += kLabelChunk) rank -= *counts;
  for (; place < count; ++place)
    if (label[place] == value && rank-- == 0) break;
  return place;
}

/// Labels (N, P) and their `counts` (N, chunks, 2) of 1 and of 0.
struct LabelTable {
  const std::int8_t* labels;
  const std::int32_t* counts;
  std::int64_t count, chunks;  // P

  /// `wanted`: image, label and rank. The place among the N P.
  MILLRACE_HOST_DEVICE std::int64_t place(const std::int64_t* wanted) const {
    const auto image = wanted[0];
    return image * count + ranked_label(labels + image * count, count,
                                        counts + image * chunks * 2 + (wanted[1] == 1 ? 0 : 1),
                                        static_cast<std::int8_t>(wanted[1]), wanted[2]);
  }
};

/// labels (N, P) -> counts (N, chunks, 2).
void count_labels(const std::int8_t* labels, std::int64_t images, std::int64_t count,
                  std::int32_t* counts, Stream stream);

/// wanted (R, columns) -> places (R).
void find_labels(const LabelTable& table, const std::int64_t* wanted, std::int64_t wanted_count,
                 std::int64_t columns, std::int64_t* places, Stream stream);

}  // namespace millrace::cuda
