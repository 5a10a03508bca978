// Opens the shared objects that a configuration names in `plugins = []`. What a plug-in registers
// in its static constants (detectors, stages, callbacks) is then known as if it had been built in.
#pragma once

#include <string>

#include "millrace/base/config.h"

namespace millrace {

/// Opens every plug-in of a configuration's `plugins` list, for the life of the process; opening
/// one twice has no effect. Call from the main thread, before the configuration is resolved.
///
/// A path is relative to the file that names it (from --set: to the current folder); if a name
/// without a folder is not found, it is looked for in lib/millrace/plugins beside the program's
/// folder. The paths in the list become absolute, so that a run's config.toml works from anywhere.
/// Throws ConfigError saying which entry cannot be opened, and why; no code of an object that is no
/// plug-in for this very Millrace has run then.
void load_plugins(Config& tree);

/// Opens the plug-in that the command line names with `option`, such as "--plugin", in the same
/// way. Returns its absolute path. Throws ConfigError.
std::string load_plugin(const std::string& file, const std::string& option);

/// Opens NAME.so of lib/millrace/plugins beside the program's folder, the plug-in that comes with
/// Millrace for the detector `name`. Returns false if there is none.
bool load_own_plugin(const std::string& name);

}  // namespace millrace
