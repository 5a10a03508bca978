// Exit codes of the programs.
#pragma once

namespace millrace {

enum ExitCode {
  kDone = 0,
  kFailed = 1,        // failed while running
  kWrongUse = 2,      // invalid command line or configuration; nothing has run
  kStoppedEarly = 3,  // stopped by request, with a saved checkpoint
};

}  // namespace millrace
