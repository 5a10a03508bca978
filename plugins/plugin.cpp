// Part of every plug-in that millrace_add_plugin makes.
#include "plugins/plugin.h"

MILLRACE_PLUGIN
