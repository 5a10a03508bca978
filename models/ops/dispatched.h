// Finds the kernels for the device of an operator's tensors.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace millrace {

/// The operator of that name (operators.cpp), called as its kernels are. `Kernel`: their type.
template <class Kernel>
c10::TypedOperatorHandle<Kernel> dispatched(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Kernel>();
}

}  // namespace millrace
