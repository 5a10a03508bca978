// bench_predict MODEL fp32|bf16 THREADS BATCH ROUNDS IMAGE...: detects objects in the images, BATCH
// at a time, ROUNDS times, and prints one line of JSON: seconds to open the model, seconds from the
// start of the process to the first result, median wall seconds and mean CPU seconds per image
// after the first batch, and the mean number of objects per image.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <string>
#include <vector>

#include "millrace/models/predict/predictor.h"

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Returns the seconds since the start of this process, including the loading of its libraries.
double seconds_since_start() {
  std::string line;
  std::getline(std::ifstream("/proc/self/stat"), line);
  auto at = line.rfind(')');
  for (int field = 2; field < 22; ++field) at = line.find(' ', at + 1);
  timespec now = {};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec) -
         std::stod(line.substr(at)) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

double cpu_seconds() {
  rusage used = {};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 7) return 2;
  const std::string precision = argv[2];
  const auto batch = static_cast<std::ptrdiff_t>(std::stoul(argv[4]));
  const std::vector<std::string> files(argv + 6, argv + argc);
  std::vector<millrace::PredictorImage> images;
  for (int round = std::stoi(argv[5]); round > 0; --round)
    for (const auto& file : files) images.emplace_back(millrace::ImageFile{file});

  const auto began = Clock::now();
  const millrace::Predictor predictor(
      argv[1],
      {.threads = std::stoi(argv[3]),
       .precision = precision == "bf16" ? millrace::Precision::bf16 : millrace::Precision::fp32});
  const auto opened = seconds_since(began);
  double first = 0, cpu = 0;
  std::size_t objects = 0;
  std::vector<double> times;
  for (auto next = images.begin(); images.end() - next >= batch; next += batch) {
    const auto start = Clock::now();
    for (const auto& found : predictor.predict(std::span(next, next + batch)))
      objects += found.objects.size();
    const auto time = seconds_since(start) / static_cast<double>(batch);
    if (first == 0) {
      first = seconds_since_start();
      cpu = cpu_seconds();
    } else {
      times.push_back(time);
    }
  }
  if (times.empty()) return 2;
  std::ranges::sort(times);
  const auto timed = static_cast<double>(times.size()) * static_cast<double>(batch);
  std::printf(
      "{\"open_s\": %.4f, \"first_s\": %.4f, \"image_s\": %.5f, \"cpu_s\": %.5f, "
      "\"objects\": %.2f}\n",
      opened, first, times[times.size() / 2], (cpu_seconds() - cpu) / timed,
      static_cast<double>(objects) / (timed + static_cast<double>(batch)));
}
