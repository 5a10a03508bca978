#include "millrace/cli/program_version.h"

#include <string_view>

#include "cli/revision.h"  // made by every build

namespace millrace::cli {

std::string program_version() {
  const std::string_view revision = MILLRACE_REVISION;
  std::string text = "trainer " MILLRACE_VERSION;
  if (!revision.empty()) text.append(" (").append(revision).append(")");
  return text;
}

}  // namespace millrace::cli
