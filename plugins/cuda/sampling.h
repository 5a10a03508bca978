// Counts labels and finds those of given ranks, to sample anchors and regions; see
// millrace/models/ops/sampling.h.
#pragma once

#include <cstdint>

#include "millrace/plugins/cuda/host_device.h"

namespace millrace::cuda {

constexpr int kLabelChunk = 1024;  // labels per chunk

/// Returns the index of the label `value` with rank `rank` among `count` labels; rank must be below
/// the number of such labels. `counts` has their number in each chunk, with a stride of two.
MILLRACE_HOST_DEVICE inline std::int64_t ranked_label(const std::int8_t* label, std::int64_t count,
                                                      const std::int32_t* counts, std::int8_t value,
                                                      std::int64_t rank) {
  std::int64_t place = 0;
  for (; rank >= *counts; counts += 2, place += kLabelChunk) rank -= *counts;
  for (; place < count; ++place)
    if (label[place] == value && rank-- == 0) break;
  return place;
}

/// Labels (N, P) and the number of labels 1 and 0 in each chunk, `counts` (N, chunks, 2).
struct LabelTable {
  const std::int8_t* labels;
  const std::int32_t* counts;
  std::int64_t count, chunks;  // P

  /// Returns the index among the N P labels. `wanted`: image, label and rank.
  MILLRACE_HOST_DEVICE std::int64_t place(const std::int64_t* wanted) const {
    const auto image = wanted[0];
    return image * count + ranked_label(labels + image * count, count,
                                        counts + image * chunks * 2 + (wanted[1] == 1 ? 0 : 1),
                                        static_cast<std::int8_t>(wanted[1]), wanted[2]);
  }
};

/// Writes the counts (N, chunks, 2) of labels (N, P).
void count_labels(const std::int8_t* labels, std::int64_t images, std::int64_t count,
                  std::int32_t* counts, Stream stream);

/// Writes the index places (R) of each row of wanted (R, columns).
void find_labels(const LabelTable& table, const std::int64_t* wanted, std::int64_t wanted_count,
                 std::int64_t columns, std::int64_t* places, Stream stream);

}  // namespace millrace::cuda
