// A data server in Python: the module's class Server.
#pragma once

#include <nanobind/nanobind.h>

namespace millrace::python {

void add_server(nanobind::module_& module);

}  // namespace millrace::python
