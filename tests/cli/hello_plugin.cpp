// The smallest plug-in: a callback of its own. HELLO_NAME is what it registers it as.
#include "plugins/plugin.h"
#include "trainer/callback.h"

namespace {

struct HelloOptions {
  std::int64_t times = 3;
  void describe(millrace::Options& o) { o.add("times", times, "how often to greet", {.min = 1}); }
};

const bool registered = millrace::callbacks().add<HelloOptions>(
    HELLO_NAME, "greets",
    {[](const millrace::Config&) { return std::make_unique<millrace::Callback>(); }});

}  // namespace

MILLRACE_PLUGIN
