#include "millrace/migration/files/python_literals.h"

#include <fmt/format.h>

#include "millrace/base/errors.h"

namespace millrace {

void read_assignments(std::string_view text, const std::string& source, const NamedValue& named,
                      const std::function<void(Assignment)>& assign) {
  PythonTokens tokens(text, source, 1);
  while (!tokens.is(PythonToken::Kind::end)) {
    const auto place = tokens.place();
    if (tokens.is(PythonToken::Kind::line_end) || tokens.is(PythonToken::Kind::text)) {
      tokens.take();  // an empty line, or a string that stands for a comment
      continue;
    }
    if (!tokens.is(PythonToken::Kind::name))
      tokens.fail("a line `name = value` is needed, not " + tokens.shown());
    Assignment one;
    one.target.push_back({tokens.take().text, place});
    PythonExpressions expressions(tokens, named);
    while (auto part = expressions.part()) one.target.push_back(std::move(*part));
    if (!tokens.take("="))
      throw ConfigError(
          fmt::format("{}: '{}' is no assignment. Nothing of a file is run here: only lines `name "
                      "= value` with "
                      "literals are read. Write out what it does",
                      place.text(), std::get<std::string>(one.target.front().data)));
    one.value = expressions.expressions();
    if (!tokens.is(PythonToken::Kind::line_end) && !tokens.is(PythonToken::Kind::end))
      tokens.fail("the end of the line is needed before " + tokens.shown());
    assign(std::move(one));
  }
}

Value read_expression(std::string_view text, const Place& place) {
  PythonTokens tokens(text, place.source, place.line);
  const NamedValue none;
  auto value = PythonExpressions(tokens, none).expressions();
  if (!tokens.is(PythonToken::Kind::end)) tokens.fail("the end is needed before " + tokens.shown());
  return value;
}

std::optional<Value> literal_of(std::string_view text, const Place& place) {
  try {
    auto value = read_expression(text, place);
    return value;
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

}  // namespace millrace
