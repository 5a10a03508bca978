// The parts of the module millrace._flow, each in a source of its own.
#pragma once

#include <nanobind/nanobind.h>

namespace millrace::python {

/// Adds the class millrace.data.DataError, raised for unusable images.
void add_data_error(nanobind::module_& module);
void add_batch(nanobind::module_& module);
void add_sample(nanobind::module_& module);
void add_stream(nanobind::module_& module);
void add_flow(nanobind::module_& module);
void add_served(nanobind::module_& module);
void add_server(nanobind::module_& module);

}  // namespace millrace::python
