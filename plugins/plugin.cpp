// Part of every plug-in that millrace_add_plugin makes.
#include "millrace/plugins/plugin.h"

MILLRACE_PLUGIN
