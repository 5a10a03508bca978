// Opens the shared objects of a configuration's `plugins = []`. The components that a plug-in's
// static constants register (detectors, stages, callbacks) are then available like built-in ones.
#pragma once

#include <string>

#include "millrace/base/config.h"

namespace millrace {

/// Opens every plug-in of a configuration's `plugins` list until the process ends; opening one
/// twice has no effect. Call this from the main thread, before the configuration is resolved.
///
/// A path is relative to the file that contains it (with --set, to the current folder). A name
/// without a folder that is not found is searched in lib/millrace/plugins beside the program's
/// folder. The paths in the list become absolute, so that a run's config.toml works from any
/// folder. Throws ConfigError with the entry and the reason if one cannot be opened; code of an
/// object that is not a plug-in for this build of Millrace does not run.
void load_plugins(Config& tree);

/// Opens the plug-in given by the command line option `option`, such as "--plugin", in the same
/// way. Returns its absolute path. Throws ConfigError.
std::string load_plugin(const std::string& file, const std::string& option);

/// Opens NAME.so in lib/millrace/plugins beside the program's folder, the plug-in that is part of
/// Millrace for the detector `name`. Returns false if it does not exist. Throws Error if it cannot
/// be opened.
bool load_own_plugin(const std::string& name);

}  // namespace millrace
