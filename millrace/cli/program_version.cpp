#include "cli/revision.h"  // made by every build
#include "millrace/cli/program.h"

namespace millrace::cli {

std::string program_version() {
  const std::string revision = MILLRACE_REVISION;
  return "trainer " MILLRACE_VERSION + (revision.empty() ? "" : " (" + revision + ")");
}

}  // namespace millrace::cli
