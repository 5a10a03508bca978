// What a process that ran a command exits with.
#pragma once

namespace millrace {

enum ExitCode {
  kDone = 0,
  kFailed = 1,        // while running
  kWrongUse = 2,      // wrong command line or configuration: nothing has run
  kStoppedEarly = 3,  // with a saved checkpoint
};

}  // namespace millrace
