// Human-readable output: on terminals of several widths, and without a terminal.
#include <pty.h>

#include <algorithm>
#include <cstdlib>
#include <regex>

#include "tests/cli/trainer.h"

namespace millrace::testing {
namespace {

/// The output of a program on a terminal, standard output and standard error together.
struct Screen {
  int exit_code = -1;
  std::string text;

  /// Returns the lines without escape sequences. Text that a later line overwrites is included.
  std::vector<std::string> lines() const {
    const auto plain = std::regex_replace(text, std::regex("\x1b\\[[0-9;]*[A-Za-z]"), "");
    std::vector<std::string> all(1);
    for (const char c : plain)
      if (c == '\r' || c == '\n')
        all.emplace_back();
      else
        all.back() += c;
    std::erase(all, "");
    return all;
  }

  bool has_colours() const { return std::regex_search(text, std::regex("\x1b\\[[0-9;]*m")); }
};

class Terminal : public TrainerOnData {
 protected:
  /// Runs `trainer` on a terminal. `environment`: NAME=VALUE.
  static Screen show(const Words& arguments, unsigned short columns,
                     const Words& environment = {"TERM=xterm"}) {
    const winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    Words words = Words{MILLRACE_TRAINER} + arguments;
    std::vector<char*> argv;
    for (auto& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    auto variables = environment;
    int terminal = -1;
    const pid_t child = ::forkpty(&terminal, nullptr, nullptr, &size);
    if (child == 0) {
      ::unsetenv("NO_COLOR");
      for (auto& variable : variables) ::putenv(variable.data());
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    Screen screen;
    char piece[4096];
    for (ssize_t n = 0; (n = ::read(terminal, piece, sizeof piece)) > 0;)
      screen.text.append(piece, static_cast<std::size_t>(n));
    ::close(terminal);
    int status = 0;
    ::waitpid(child, &status, 0);
    screen.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return screen;
  }

  Words training(const Words& more = {}) const {
    return on(data_, Words{"run"} + more,
              {"train.max_steps=3", setting("train.output", in_folder("runs")),
               "callbacks.pictures.enabled=false"});
  }

  static const std::string* next_in(const std::vector<std::string>& lines) {
    const auto found = std::ranges::find_if(
        lines, [](const auto& line) { return line.find("next: ") != line.npos; });
    return found == lines.end() ? nullptr : &*found;
  }
};

TEST_F(Terminal, FitsProgressIntoLine) {
  for (const unsigned short columns : {60, 80, 200}) {
    const auto screen = show(training(), columns);
    EXPECT_EQ(screen.exit_code, 0) << screen.text;
    int drawn = 0;
    for (const auto& line : screen.lines()) {
      if (!line.starts_with("epoch ")) continue;
      ++drawn;
      EXPECT_LT(line.size(), columns) << line;
      for (const auto* part : {"  [", "]  ", " left  loss "}) EXPECT_THAT(line, HasSubstr(part));
      if (columns >= 200) {
        EXPECT_THAT(line, AllOf(HasSubstr("  step "), HasSubstr("  lr ")));
      }
    }
    EXPECT_GE(drawn, 1) << screen.text;
  }
}

TEST_F(Terminal, EndsRunWithTableAndNextStep) {
  const auto screen = show(training(), 80);
  EXPECT_THAT(screen.text, HasSubstr("            AP    AP50    AP75   small  medium   large\r\n"));
  EXPECT_THAT(screen.text, Not(HasSubstr("Average Precision")));
  const auto lines = screen.lines();
  EXPECT_THAT(lines.back(), AllOf(HasSubstr("info next: "), HasSubstr("maskrcnn-"),
                                  HasSubstr("; trainer predict "), HasSubstr("; trainer export ")));
  const auto log = read_text(in_folder("runs/maskrcnn-1/log.txt"));
  EXPECT_THAT(log, AllOf(HasSubstr("Evaluate annotation type *bbox*"),
                         HasSubstr("Evaluate annotation type *segm*"),
                         HasSubstr(" Average Recall     (AR) @[ IoU=0.50:0.95 | area= large")));
  const auto report = show({"report", in_folder("runs/maskrcnn-1")}, 80).lines();
  ASSERT_TRUE(next_in(report));
  EXPECT_THAT(*next_in(report), HasSubstr("maskrcnn-1/report.html; trainer report RUN RUN"));
}

TEST_F(Terminal, UsesColoursOnlyIfWanted) {
  EXPECT_TRUE(show(training(), 80).has_colours());
  EXPECT_TRUE(show(training(), 80, {"TERM=xterm", "NO_COLOR="}).has_colours());
  EXPECT_FALSE(show(training(), 80, {"TERM=xterm", "NO_COLOR=1"}).has_colours());
  EXPECT_EQ(show(training(), 80, {"TERM=dumb"}).text.find('\x1b'), std::string::npos);
}

TEST_F(Terminal, WritesPlainTextWithoutTerminal) {
  const auto outcome = successful(trainer(training()));
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err.find_first_of("\x1b\r"), std::string::npos) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("info epoch 1.5"), HasSubstr("info next: ")));
}

TEST_F(Terminal, QuietRunShowsOnlyResult) {
  for (const bool on_terminal : {false, true}) {
    std::string shown;
    if (on_terminal) {
      shown = show(training({"--quiet"}), 80).text;
      std::erase(shown, '\r');
    } else {
      shown = successful(trainer(training({"--quiet"}))).err;
    }
    EXPECT_TRUE(std::regex_match(shown, std::regex(".*step 3\n +AP .*\n  box .*\n  mask .*\n"
                                                   ".*step 3.*\n")))
        << shown;
  }
  EXPECT_THAT(read_text(in_folder("runs/maskrcnn-1/log.txt")), HasSubstr("info epoch "));
}

TEST_F(Terminal, WrapsLinesBetweenWords) {
  const std::vector<Words> commands = {training(),
                                       on(data_, {"doctor"}),
                                       on(data_, {"inspect", "--out", in_folder("seen")}),
                                       {"list"}};
  for (const auto& words : commands) {
    const auto screen = show(words, 80);
    for (const auto& line : screen.lines()) {
      const auto first = line.find_first_not_of(' ');
      const bool is_one_word = first == line.npos || line.find(' ', first) == line.npos;
      EXPECT_TRUE(line.size() <= 80 || is_one_word || line.find("next: ") != line.npos) << line;
    }
  }
  // Log lines are not wrapped, so that logs can be searched.
  const auto has_long_line = [](const std::string& text) {
    return std::regex_search(text, std::regex("info [^\n]{80}"));
  };
  EXPECT_TRUE(has_long_line(successful(trainer(training())).err));
  EXPECT_TRUE(has_long_line(read_text(in_folder("runs/maskrcnn-1/log.txt"))));
}

TEST_F(Terminal, SuggestsNextStepOnlyOnTerminal) {
  const std::vector<std::pair<Words, std::string>> cases = {
      {on(data_, {"doctor"}), "trainer run configs/maskrcnn.toml"},
      {on(data_, {"config"}), "trainer doctor configs/maskrcnn.toml"},
      {{"list"}, "trainer config CONFIG"},
      {{"man"}, "man -l -"},
      {{"completion", "zsh"}, "~/.zshrc"},
      {{"coco-eval", "--iou", "bbox", "--gt", val_annotations_, "--dt", in_folder("none.json")},
       "--analyze"},
      {on(data_, {"pack", "--out", in_folder("packed")}), "trainer bench dataflow"},
      {on(data_, {"bench", "dataflow", "--batches", "2"}), "trainer bench model"}};
  write_text(in_folder("none.json"), "[]");
  for (const auto& [words, what] : cases) {
    fs::remove_all(in_folder("packed"));
    const auto screen = show(words, 80);
    EXPECT_EQ(screen.exit_code, 0) << screen.text;
    const auto lines = screen.lines();
    const auto* next = next_in(lines);
    ASSERT_TRUE(next) << words[0] << screen.text;
    EXPECT_THAT(*next, AllOf(StartsWith("next: "), HasSubstr(what)));
    EXPECT_EQ(next, &lines.back());
    fs::remove_all(in_folder("packed"));
    EXPECT_EQ(next_in(show(words + Words{"--quiet"}, 80).lines()), nullptr);
    fs::remove_all(in_folder("packed"));
    const auto piped = successful(trainer(words));
    EXPECT_THAT(piped.out + piped.err, Not(HasSubstr("next: "))) << words[0];
  }
  EXPECT_EQ(next_in(show(on(data_, {"doctor", "--json"}), 80).lines()), nullptr);
}

TEST_F(Terminal, DoctorSuggestsFirstFix) {
  edit(annotations_, [](Json& json) { json["annotations"][0]["category_id"] = 99; });
  const auto screen = show(on(data_, {"doctor"}), 80);
  EXPECT_EQ(screen.exit_code, 1);
  const auto lines = screen.lines();
  ASSERT_TRUE(next_in(lines)) << screen.text;
  EXPECT_THAT(*next_in(lines), AllOf(HasSubstr("next: "), HasSubstr("docs/data-checks.md")));
}

}  // namespace
}  // namespace millrace::testing
