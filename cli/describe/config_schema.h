// A JSON schema of configuration files, for editors and other checks of TOML.
#pragma once

#include <nlohmann/json.hpp>

namespace millrace::cli {

/// The schema (draft 7, which Taplo takes) of one file: of all tables and of every component that
/// is registered now, those of loaded plug-ins among them. It accepts whatever `trainer config`
/// does, and refuses unknown keys and types, values of another type, beyond an option's limits or
/// not among its names. It cannot see what several keys say together, what a `base` and its heir do
/// (either may lack model.type), the limits of durations, and that 1.0 is no integer. The same
/// bytes for the same components.
nlohmann::ordered_json config_schema();

}  // namespace millrace::cli
