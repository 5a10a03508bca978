// A JSON schema of configuration files, for editors and other TOML checkers.
#pragma once

#include <nlohmann/json.hpp>

namespace millrace::cli {

/// Returns the schema (draft 7, which Taplo supports) of one configuration file, with all tables
/// and all registered components, including those of loaded plug-ins. It accepts every file that
/// `trainer config` accepts. It rejects unknown keys, unknown component types, values of another
/// type, beyond an option's limits or not among its choices. It does not check relations between
/// keys, the combination of a file with its `base` (either may lack model.type), the limits of
/// durations, or that 1.0 is not an integer. Equal components give equal bytes.
nlohmann::ordered_json config_schema();

}  // namespace millrace::cli
