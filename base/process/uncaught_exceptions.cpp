#include "millrace/base/process/uncaught_exceptions.h"

#include <fmt/format.h>

#include <cstdlib>
#include <exception>
#include <string>

#include "millrace/base/errors.h"
#include "millrace/base/events/last_events.h"
#include "millrace/base/log.h"
#include "millrace/base/process/exit_codes.h"

namespace millrace {
namespace {

[[noreturn]] void report_uncaught() {
  const auto uncaught = std::current_exception();
  if (!uncaught) std::abort();  // a bug; abort to leave a core dump
  std::string what;
  try {
    std::rethrow_exception(uncaught);
  } catch (...) {
    what = what_is_thrown();
  }
  write_last_events(what);
  print_to_stderr(fmt::format("trainer: error: {}\n", what));
  std::_Exit(kFailed);
}

}  // namespace

void report_uncaught_exceptions() { std::set_terminate(report_uncaught); }

}  // namespace millrace
