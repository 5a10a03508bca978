#include "coco/evaluate.h"

#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <algorithm>

#include "coco/accumulate.h"

namespace millrace::coco {

Evaluation evaluate(const Dataset& truth, const Detections& detections,
                    const EvaluateOptions& options, std::span<const std::int64_t> image_ids) {
  const EvaluateOptions valid = checked(options);
  const int allowed = static_cast<int>(
      tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism));
  tbb::task_arena arena(valid.threads > 0 ? std::min(valid.threads, allowed) : allowed);
  return arena.execute(
      [&] { return accumulate(truth, match(truth, detections, valid, image_ids), valid); });
}

}  // namespace millrace::coco
