// Batches from data servers in Python: the module's class Served.
#pragma once

#include <nanobind/nanobind.h>

namespace millrace::python {

void add_served(nanobind::module_& module);

}  // namespace millrace::python
