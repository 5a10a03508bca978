// Which build of the program this is.
#pragma once

#include <string>

namespace millrace::cli {

/// "trainer 0.1.0", with the git revision that it was built from where there was one: "trainer
/// 0.1.0 (258786a...)", "-dirty" after it where the sources differed from that.
std::string program_version();

}  // namespace millrace::cli
