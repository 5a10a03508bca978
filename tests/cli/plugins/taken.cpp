// Registers a name that a built-in callback has.
#include "millrace/trainer/callback.h"

namespace {

MILLRACE_REGISTER(millrace::register_callback<millrace::Callback>("log", "greets"));

}  // namespace
