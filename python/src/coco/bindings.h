// The parts of the module millrace._coco.
#pragma once

#include <nanobind/nanobind.h>

namespace millrace::python {

void bind_masks(nanobind::module_& module);
void bind_sets(nanobind::module_& module);
void bind_evaluation(nanobind::module_& module);

}  // namespace millrace::python
