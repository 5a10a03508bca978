// The text of --help in lines of 80 columns.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace millrace::cli {

/// CLI11's help, whose descriptions are broken between words. Examples, which are copied, are not.
class WrappedHelp final : public CLI::Formatter {
 public:
  std::string make_description(const CLI::App* app) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
  std::string make_subcommand(const CLI::App* command) const override;

 private:
  std::string beside_names(const std::string& text) const;
};

}  // namespace millrace::cli
