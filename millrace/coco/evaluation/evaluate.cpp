#include "millrace/coco/evaluation/evaluate.h"

#include "millrace/coco/evaluation/accumulate.h"
#include "millrace/coco/evaluation/arena.h"

namespace millrace::coco {

Evaluation evaluate(const Dataset& truth, const Detections& detections,
                    const EvaluateOptions& options, std::span<const std::int64_t> image_ids) {
  const EvaluateOptions valid = checked(options);
  return in_arena(valid.threads, [&] {
    return accumulate(truth, match(truth, detections, valid, image_ids), valid);
  });
}

}  // namespace millrace::coco
