// A flow in Python: the class Flow of the module, which millrace.data makes its own of.
#pragma once

#include <nanobind/nanobind.h>

namespace millrace::python {

void add_flow(nanobind::module_& module);

}  // namespace millrace::python
