// The tokens of a text of Python.
#pragma once

#include <string>
#include <string_view>

#include "millrace/migration/files/value.h"

namespace millrace {

struct PythonToken {
  enum class Kind { name, number, text, sign, line_end, end } kind = Kind::end;
  std::string text;  // of a string: its value
  int line = 0;
};

/// Cuts a text into tokens. Line ends within brackets are blanks, as in Python. A copy looks ahead.
class PythonTokens {
 public:
  /// `text`: borrowed. Throws ConfigError naming the line, as all that moves on.
  PythonTokens(std::string_view text, std::string source, int first_line);

  const PythonToken& now() const { return now_; }
  bool is(PythonToken::Kind kind) const { return now_.kind == kind; }
  bool is(std::string_view sign) const { return is(PythonToken::Kind::sign) && now_.text == sign; }
  bool is_name(std::string_view name) const {
    return is(PythonToken::Kind::name) && now_.text == name;
  }
  /// Moves on if it is this sign.
  bool take(std::string_view sign);
  PythonToken take();
  void expect(std::string_view sign);

  /// The token as an error names it.
  std::string shown() const;
  Place place() const { return {source_, now_.line}; }
  [[noreturn]] void fail(const std::string& what) const;

 private:
  void next();
  void skip_blanks();
  bool is_string() const;
  void read_string();
  void read_escape();
  void read_number();

  std::string_view text_;
  std::string source_;
  std::size_t at_ = 0;
  int line_;
  int brackets_ = 0;
  PythonToken now_;
};

}  // namespace millrace
