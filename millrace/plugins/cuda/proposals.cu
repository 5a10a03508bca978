#include "millrace/plugins/cuda/proposals.h"

#include "millrace/plugins/cuda/launch.h"

namespace millrace::cuda {
namespace {

__global__ void decode_all(ChosenAnchors chosen, BoxDecoding coding, float min_side, float* boxes,
                           std::uint8_t* valid) {
  each_index(chosen.count,
             [&](std::int64_t i) { decode_chosen(chosen, coding, min_side, i, boxes, valid); });
}

}  // namespace

void decode_chosen(const ChosenAnchors& chosen, const BoxDecoding& coding, float min_side,
                   float* boxes, std::uint8_t* valid, Stream stream) {
  if (chosen.count == 0) return;
  decode_all<<<blocks_for(chosen.count), kThreads, 0, stream>>>(chosen, coding, min_side, boxes,
                                                                valid);
  check_launch("decode_chosen");
}

}  // namespace millrace::cuda
