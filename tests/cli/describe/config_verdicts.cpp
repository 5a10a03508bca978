// Reads file names of configurations from standard input and prints one line for each: "ok" or the
// error of `trainer config`. One process for all files saves a tenth of a second per file.
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
