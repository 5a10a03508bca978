// Files that inherit from each other, in both notations.
#include "tests/migration/recipes.h"

namespace millrace::testing {
namespace {

class ForeignFiles : public ::testing::Test {
 protected:
  std::string python(const std::string& file) {
    return read_python_config(folder_ / file).tree.text(/*most=*/1000);
  }
  std::string yaml(const std::string& text) {
    return read_yaml_config(folder_.file("one.yaml", text)).tree.text(/*most=*/1000);
  }
  std::string wrong_yaml(const std::string& text) {
    return message_of<Error>([&] { yaml(text); });
  }

  Scratch folder_;
};

TEST_F(ForeignFiles, DictsMergeAndEverythingElseReplaces) {
  folder_.file("base.py", "a = dict(x=1, y=[1, 2], z=dict(u=1))\nb = 2\n");
  folder_.file("one.py", "_base_ = 'base.py'\na = dict(y=[3], z=dict(v=2))\n");
  EXPECT_EQ(python("one.py"), "dict(a=dict(x=1, y=[3], z=dict(u=1, v=2)), b=2)");
}

TEST_F(ForeignFiles, DeleteReplacesADict) {
  folder_.file("base.py", "a = dict(type='SGD', lr=1)\n");
  folder_.file("one.py", "_base_ = ['base.py']\na = dict(_delete_=True, type='AdamW')\n");
  EXPECT_EQ(python("one.py"), "dict(a=dict(type='AdamW'))");
}

TEST_F(ForeignFiles, ValuesOfTheBaseHaveNames) {
  folder_.file("base.py", "args = None\nlist = [dict(step=1), dict(step=2)]\n");
  folder_.file("one.py",
               "_base_ = 'base.py'\na = dict(one={{_base_.args}}, two=_base_.list[1].step)\n"
               "_base_.list[0].step = 7\n_base_.new.key = 'x'\n");
  EXPECT_EQ(
      python("one.py"),
      "dict(args=None, list=[dict(step=7), dict(step=2)], new=dict(key='x'), a=dict(one=None, "
      "two=2))");
}

TEST_F(ForeignFiles, WhereAValueStandsIsKept) {
  folder_.file("base.py", "# a comment\na = dict(\n    x=1,\n    y=2)\n");
  folder_.file("one.py", "_base_ = 'base.py'\n\na = dict(y=3)\n");
  const auto tree = read_python_config(folder_ / "one.py").tree;
  EXPECT_EQ(tree.at_path("a.x")->place.text(), (folder_ / "base.py").string() + ":3");
  EXPECT_EQ(tree.at_path("a.y")->place.text(), (folder_ / "one.py").string() + ":3");
}

TEST_F(ForeignFiles, BasesThatCannotBeReadAreNamedWithWhoAsksForThem) {
  folder_.file("a.py", "x = 1\n_base_ = 'b.py'\n");
  EXPECT_THAT(message_of([&] { python("a.py"); }),
              AllOf(HasSubstr("a.py:2: the base "), HasSubstr("b.py does not exist")));
  folder_.file("b.py", "_base_ = 'a.py'\n");
  EXPECT_THAT(message_of([&] { python("a.py"); }), HasSubstr("inherits from itself"));
  folder_.file("b.py", "_base_ = 'mmdet::x.py'\n");
  EXPECT_THAT(message_of([&] { python("a.py"); }), HasSubstr("in no file beside this one"));
}

TEST_F(ForeignFiles, TextsOfYamlArePythonsLiteralsWhereTheyAreSome) {
  EXPECT_EQ(yaml("A: (60000, 80000)\nB: \"('x',)\"\nC: 1e-3\nD: yes\nE:\nF: a-b\nG: \"True\"\n"),
            "dict(A=[60000, 80000], B=['x'], C=0.001, D=True, E=None, F='a-b', G=True)");
  EXPECT_EQ(yaml("A: !!python/object/apply:eval [\"[x * 2 for x in [1, 2]]\"]\n"),
            "dict(A=[2, 4])");
}

TEST_F(ForeignFiles, YamlInheritsAlongAChain) {
  folder_.file("base.yaml", "A: {x: 1, y: 2}\nB: 1\n");
  folder_.file("middle.yaml", "_BASE_: base.yaml\nA: {y: 3}\n");
  EXPECT_EQ(yaml("_BASE_: middle.yaml\nB: [2]\n"), "dict(A=dict(x=1, y=3), B=[2])");
}

TEST_F(ForeignFiles, WrongYamlIsAnErrorWithItsLine) {
  EXPECT_THAT(wrong_yaml("A: 1\nB: [1\n"),
              AllOf(HasSubstr("one.yaml:"), HasSubstr("not readable")));
  EXPECT_THAT(wrong_yaml("- 1\n"), HasSubstr("one.yaml:1: keys with values"));
  EXPECT_THAT(wrong_yaml("A: 1\nB: 2\nA: 3\n"), HasSubstr("one.yaml:3: the key 'A' comes twice"));
  EXPECT_THAT(wrong_yaml("A: 1\nB: !!python/object/apply:os.system [\"x\"]\n"),
              AllOf(HasSubstr("one.yaml:2: "), HasSubstr("object of Python")));
  EXPECT_THAT(wrong_yaml("A: !!python/object/apply:eval [\"open('x')\"]\n"),
              AllOf(HasSubstr("one.yaml:1: "), HasSubstr("open()")));
  EXPECT_EQ(yaml(""), "dict()");
}

TEST_F(ForeignFiles, AliasesThatUnfoldWithoutEndAreRefused) {
  std::string text = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
  for (char name = 'b'; name < 'j'; ++name) {
    const std::string below(1, static_cast<char>(name - 1));
    text += std::string(1, name) + ": &" + name + " [";
    for (int i = 0; i < 10; ++i) text += (i ? ", *" : "*") + below;
    text += "]\n";
  }
  EXPECT_THAT(wrong_yaml(text), HasSubstr("more than 100,000 values"));
  EXPECT_THAT(wrong_yaml("a: &a [*a]\n"), HasSubstr("nested too deeply"));
  EXPECT_THAT(wrong_yaml("a: " + std::string(5000, '[')), HasSubstr("one.yaml:1"));
}

}  // namespace
}  // namespace millrace::testing
