// How long this process has been there.
#pragma once

namespace millrace {

/// Seconds since the system started the process (before any library was loaded), to 10 ms; 0 where it does not say.
double process_age();

}  // namespace millrace
