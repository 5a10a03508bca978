// Needs a library that does not exist.
#include "millrace/plugins/plugin.h"

MILLRACE_PLUGIN_NEEDS(
    "libm.so.6: arithmetic\n"
    "libnobody_has_this.so: an oracle of Delphi\n")
