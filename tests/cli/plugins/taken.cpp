// Wants a name that a built-in callback has.
#include "trainer/callback.h"

namespace {

const bool registered = millrace::callbacks().add<millrace::NoOptions>(
    "log", "greets",
    {[](const millrace::Config&) { return std::make_unique<millrace::Callback>(); }});

}  // namespace
