// The expressions of Python that stand for literals, by recursive descent over the tokens.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "millrace/migration/files/python_tokens.h"
#include "millrace/migration/files/value.h"

namespace millrace {

/// Gives the value of a name that an expression uses; nullptr: there is none. Called while reading,
/// in the order of the text.
using NamedValue = std::function<const Value*(const std::string& name)>;

/// Reads expressions from where the tokens are. Each function throws ConfigError naming the line.
class PythonExpressions {
 public:
  /// Both are borrowed.
  PythonExpressions(PythonTokens& tokens, const NamedValue& named)
      : tokens_(tokens), named_(named) {}

  /// An expression, or several with commas: a tuple.
  Value expressions();

  /// ".name" or "[key]" after a target's name.
  std::optional<Value> part();

 private:
  Value expression();
  Value term();
  Value unary();
  Value power();
  Value postfix();
  Value atom();
  Value name(const Place& place);
  Value::Data number(const std::string& text);
  Value list(const Place& place);
  Value comprehension(const Place& place);
  Value braces(const Place& place);
  Value dict(const Place& place, std::string_view close);
  bool ends() const;
  bool is_comprehension() const;

  PythonTokens& tokens_;
  const NamedValue& named_;
  std::string loop_name_;
  Value loop_value_;
  int depth_ = 0;
};

}  // namespace millrace
