// Reads names of configurations from standard input and prints for each, in one line, "ok" or why
// `trainer config` refuses it; without the tenth of a second that a process takes for each.
#include <algorithm>
#include <iostream>
#include <string>

#include "millrace/base/config.h"
#include "millrace/base/errors.h"
#include "millrace/trainer/run/run.h"

int main() {
  using namespace millrace;
  for (std::string file; std::getline(std::cin, file);) {
    std::string verdict = "ok";
    try {
      make_callbacks(resolve(load_config(file)));
    } catch (const std::exception& problem) {
      verdict = problem.what();
      std::ranges::replace(verdict, '\n', ' ');
    }
    std::cout << verdict << '\n';
  }
}
