// How runs stand, what they were configured with and ran on. Pure; any thread.
#pragma once

#include <span>
#include <string>

#include "millrace/page/page.h"
#include "millrace/report/run_files.h"

namespace millrace::report {

/// How each run stands and what is missing in its folder. HTML.
std::string standing_text(std::span<const RunFiles> runs);

/// Every value and where it came from; of several runs first those that differ.
page::Section configuration_section(std::span<const RunFiles> runs);

/// Programs, machines, commands, and how long and on how many devices each run trained.
page::Section environment_section(std::span<const RunFiles> runs);

/// Time of training times devices, in hours; 0 if record.json does not say.
double device_hours(const RunFiles& run);

/// "2:03 on 4 x cuda (NVIDIA H100), 0.14 device-hours, price 0.45"; "" if record.json does not say.
std::string cost_text(const RunFiles& run);

}  // namespace millrace::report
