// Counts labels and finds those of given ranks, to sample anchors and regions; see
// millrace/models/ops/sampling.h.
#pragma once

#include <cstdint>

#include "millrace/plugins/cuda/host_device.h"

namespace millrace::cuda {

constexpr int kLabelChunk = 1024;  // labels per chunk

/// Labels (N, P) and the number of labels 1 and 0 in each chunk, `counts` (N, chunks, 2).
struct LabelTable {
  const std::int8_t* labels;
  const std::int32_t* counts;
  std::int64_t count, chunks;  // P

  /// Returns the index among the N P labels. `wanted`: image, label and rank, which must be below
  /// the image's number of such labels.
  MILLRACE_HOST_DEVICE std::int64_t place(const std::int64_t* wanted) const {
    const auto image = wanted[0], value = wanted[1];
    auto rank = wanted[2];
    const auto* const own = labels + image * count;
    const auto* in_chunk = counts + image * chunks * 2 + (value == 1 ? 0 : 1);
    std::int64_t place = 0;
    for (; rank >= *in_chunk; in_chunk += 2, place += kLabelChunk) rank -= *in_chunk;
    for (; place < count; ++place)
      if (own[place] == value && rank-- == 0) break;
    return image * count + place;
  }
};

/// Writes the counts (N, chunks, 2) of labels (N, P).
void count_labels(const std::int8_t* labels, std::int64_t images, std::int64_t count,
                  std::int32_t* counts, Stream stream);

/// Writes the index places (R) of each row of wanted (R, columns).
void find_labels(const LabelTable& table, const std::int64_t* wanted, std::int64_t wanted_count,
                 std::int64_t columns, std::int64_t* places, Stream stream);

}  // namespace millrace::cuda
