// Sources of samples, whatever they are made of, read as a flow would read them.
#pragma once

#include <functional>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/doctor/findings.h"
#include "millrace/engine/source.h"

namespace millrace {

/// Takes each sample of the source, and decodes its image where `decode`, by all threads of the
/// caller's arena, which call `on_sample` after each.
void check_samples(const Source<Sample>& source, bool decode, coco::Findings& findings,
                   const std::function<void()>& on_sample);

}  // namespace millrace
