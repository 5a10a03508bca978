// Wants a name that a built-in callback has.
#include "millrace/trainer/callback.h"

namespace {

MILLRACE_REGISTER(millrace::callbacks().add<millrace::NoOptions>(
    "log", "greets",
    {[](const millrace::Config&) { return std::make_unique<millrace::Callback>(); }}));

}  // namespace
