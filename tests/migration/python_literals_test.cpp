// The literal subset of Python: values, and errors that name the line.
#include "millrace/migration/files/python_literals.h"

#include "tests/migration/recipes.h"

namespace millrace::testing {
namespace {

std::string read(const std::string& text) {
  return read_expression(text, {"a.py", 1}).text(/*most=*/1000);
}

TEST(PythonLiterals, ValuesAreThoseOfPython) {
  EXPECT_EQ(read("[1, -2.5, 1e-3, .5, 1_000, None, True, 'a' \"b\", (), (1,), {'k': 1}]"),
            "[1, -2.5, 0.001, 0.5, 1000, None, True, 'ab', [], [1], dict(k=1)]");
  EXPECT_EQ(read("dict(a=1, b=dict(c=[2]), **{'d': 3})"), "dict(a=1, b=dict(c=[2]), d=3)");
  EXPECT_EQ(read("1.0 / 9.0"), "0.1111111111111111");
  EXPECT_EQ(read("[0.1] * 2 + [2 ** -1, -2 ** 2, 7 // 2, 7 % 4, 2 * 3, 1 / 2]"),
            "[0.1, 0.1, 0.5, -4, 3, 3, 6, 0.5]");
  EXPECT_EQ(read("'data/' + 'coco'"), "'data/coco'");
  EXPECT_EQ(read("[[x, x * 2 ** (1.0 / 2)] for x in [1, 4]]"),
            "[[1, 1.4142135623730951], [4, 5.656854249492381]]");
  EXPECT_EQ(read("r'a\\d' 'b\\n'"), "'a\\db\n'");
}

TEST(PythonLiterals, WhatWouldRunIsAnErrorWithItsLine) {
  const auto wrong = [](const std::string& text) {
    return message_of<ConfigError>(
        [&] { read_assignments(text, "a.py", {}, [](const Assignment&) {}); });
  };
  EXPECT_THAT(wrong("a = 1\nimport os\n"), AllOf(HasSubstr("a.py:2: "), HasSubstr("'import'")));
  EXPECT_THAT(wrong("a = dict(\n  b=open('x'))\n"),
              AllOf(HasSubstr("a.py:2: "), HasSubstr("open()")));
  EXPECT_THAT(wrong("a = [].append\n"), HasSubstr("a.py:1: "));
  EXPECT_THAT(wrong("a = 'x'.join([])\n"), HasSubstr("a.py:1: "));
  EXPECT_THAT(wrong("a = 1 if True else 2\n"), HasSubstr("is no literal"));
  EXPECT_THAT(wrong("a = f'{1}'\n"), HasSubstr("plain text"));
  EXPECT_THAT(wrong("a = b\n"), HasSubstr("'b' is not the name of a value above"));
  EXPECT_THAT(wrong("for x in y:\n  pass\n"), HasSubstr("'for' is no assignment"));
  EXPECT_THAT(wrong("a += 1\n"), HasSubstr("'a' is no assignment"));
}

TEST(PythonLiterals, DamagedTextIsAnErrorWithItsLine) {
  const auto wrong = [](const std::string& text) {
    return message_of<ConfigError>([&] { read_expression(text, {"a.py", 1}); });
  };
  EXPECT_THAT(wrong("[1,\n 2"), HasSubstr("a.py:2: "));
  EXPECT_THAT(wrong("'abc"), HasSubstr("does not end"));
  EXPECT_THAT(wrong("[1 2]"), HasSubstr("',' is needed before '2'"));
  EXPECT_THAT(wrong("0x1F"), HasSubstr("no decimal number"));
  EXPECT_THAT(wrong("1 / 0"), HasSubstr("division by zero"));
  EXPECT_THAT(wrong("9.0 ** 9999"), HasSubstr("no finite number"));
  EXPECT_THAT(wrong("[0] * 10 ** 12"), HasSubstr("100,000 elements"));
  EXPECT_THAT(wrong("'a' + 1"), HasSubstr("numbers are needed"));
  EXPECT_THAT(wrong(std::string(1000, '[')), HasSubstr("nested too deeply"));
  EXPECT_THAT(wrong(std::string(1000, '-') + "1"), HasSubstr("nested too deeply"));
  EXPECT_THAT(wrong("[x for x in 3]"), HasSubstr("goes over a list"));
  EXPECT_THAT(wrong(""), HasSubstr("a value is needed"));
}

TEST(PythonLiterals, EveryBeginningOfARecipeIsReadOrRefused) {
  const auto text = read_file(kRecipes / "mmdetection2" / "retinanet.py");
  for (std::size_t size = 0; size < text.size(); size += 7) {
    try {
      Value own{Value::Dict{}, {}};
      read_assignments(
          text.substr(0, size), "a.py",
          [&](const std::string& name) { return std::as_const(own).find(name); },
          [&](Assignment one) {
            own.set(std::get<std::string>(one.target.front().data), std::move(one.value));
          });
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr("a.py:"));
    }
  }
}

}  // namespace
}  // namespace millrace::testing
