// Opens the shared objects that a configuration names in `plugins = []`. What a plug-in registers in
// its static constants (detectors, stages, callbacks) is then known as if it had been built in.
#pragma once

#include "base/config.h"

namespace millrace {

/// Opens every plug-in of a configuration's `plugins` list, for the life of the process; opening one
/// twice does nothing. Paths are relative to the current folder. Call from main's thread, before the
/// configuration is resolved. Throws ConfigError saying which entry cannot be opened, and why.
void load_plugins(const Config& tree);

}  // namespace millrace
