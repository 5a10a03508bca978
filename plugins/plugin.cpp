// Source file that millrace_add_plugin adds to every plug-in.
#include "millrace/plugins/plugin.h"

MILLRACE_PLUGIN
