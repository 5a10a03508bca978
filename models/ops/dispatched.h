// Looks up the operators whose kernels depend on the device of their tensors.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace millrace {

/// Returns the operator of that name (operators.cpp). `Kernel` is the function type of its kernels.
template <class Kernel>
c10::TypedOperatorHandle<Kernel> dispatched(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Kernel>();
}

}  // namespace millrace
