#include "millrace/cli/wrapped_help.h"

#include <sstream>

#include "millrace/base/word_wrap.h"

namespace millrace::cli {
namespace {

constexpr std::size_t kColumns = 80;

}  // namespace

std::string WrappedHelp::make_description(const CLI::App* app) const {
  return wrapped(Formatter::make_description(app), kColumns, "");
}

std::string WrappedHelp::make_option_desc(const CLI::Option* option) const {
  return beside_names(Formatter::make_option_desc(option));
}

std::string WrappedHelp::make_subcommand(const CLI::App* command) const {
  std::ostringstream text;
  CLI::detail::format_help(text, command->get_display_name(true),
                           beside_names(command->get_description()), get_column_width());
  return text.str();
}

std::string WrappedHelp::beside_names(const std::string& text) const {
  return wrapped(text, kColumns - get_column_width(), "");
}

}  // namespace millrace::cli
