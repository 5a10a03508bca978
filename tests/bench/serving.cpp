// bench_serving WAY SECONDS [made=RATE] [taken=RATE] [consumers=N] [servers=N]: reads batches of 4
// x 800 x 1216 x 3 bytes with boxes from servers in other processes and prints one line of JSON.
// `made` limits the rate of each server, `taken` that of each consumer, in batches/s; both run at
// full speed by default. WAY is tcp, curve, ipc or shared; socket and checked measure the kernel's
// part (serving/transports.h).
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <barrier>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <exception>
#include <string_view>
#include <thread>

#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/base/process/process_usage.h"
#include "tests/bench/serving/batches.h"
#include "tests/bench/serving/transports.h"

namespace {

using namespace millrace;
using namespace millrace::bench;

// The number of batches before the measurement, which fill the consumer's queue. From then on, one
// batch arrives for each batch that is taken.
constexpr int kFirst = 32;

/// Returns the user and system time of another process in seconds.
double cpu_seconds_of(pid_t process) {
  clockid_t clock{};
  timespec spent{};
  if (::clock_getcpuclockid(process, &clock) != 0 || ::clock_gettime(clock, &spent) != 0)
    throw Error("a server exited");
  return static_cast<double>(spent.tv_sec) + 1e-9 * static_cast<double>(spent.tv_nsec);
}

double cpu_seconds_of(const Transport& transport) {
  double sum = 0;
  for (const auto server : transport.servers()) sum += cpu_seconds_of(server);
  return sum;
}

/// Statistics of the batches that one consumer received.
struct Had {
  std::int64_t batches = 0, bytes = 0;
  std::vector<double> ms;  // from when a batch was ready until it arrived
};

Had read(Transport& transport, const Load& load, double seconds, std::barrier<>& in_step) {
  const auto take = transport.connect();
  Had had;
  const Pace first(4 * load.taken);
  for (int k = 1; k <= kFirst; ++k) {
    std::this_thread::sleep_until(first.at(k));
    take();
  }
  in_step.arrive_and_wait();
  const Pace pace(load.taken);
  for (const auto start = Clock::now(); seconds_since(start) < seconds;) {
    std::this_thread::sleep_until(pace.at(had.batches + 1));
    const auto taken = take();
    ++had.batches;
    had.bytes += taken.bytes;
    had.ms.push_back(1e3 * seconds_since(taken.ready));
  }
  in_step.arrive_and_wait();  // before the connections close
  return had;
}

void measure(const Load& load, double seconds) {
  const auto transport = load.transport == "socket" || load.transport == "checked"
                             ? open_bare_socket(load)
                             : open_data_servers(load);
  std::vector<Had> had(static_cast<std::size_t>(load.consumers));
  std::barrier in_step(load.consumers + 1);
  std::vector<std::jthread> threads;
  for (auto& each : had)
    threads.emplace_back([&] {
      try {
        each = read(*transport, load, seconds, in_step);
      } catch (const std::exception& problem) {
        fmt::print(stderr, "bench_serving: {}\n", problem.what());
        std::_Exit(1);
      }
    });
  in_step.arrive_and_wait();
  const auto start = Clock::now();
  const auto own = cpu_seconds(), theirs = cpu_seconds_of(*transport);
  in_step.arrive_and_wait();
  const auto wall = seconds_since(start);
  const auto consumer = cpu_seconds() - own, server = cpu_seconds_of(*transport) - theirs;
  threads.clear();
  Had all;
  for (const auto& each : had) {
    all.batches += each.batches;
    all.bytes += each.bytes;
    all.ms.insert(all.ms.end(), each.ms.begin(), each.ms.end());
  }
  const auto [least, most] = std::ranges::minmax(had, {}, &Had::batches);
  fmt::print(
      "{{\"peer\": \"millrace\", \"transport\": \"{}\", \"value\": {:.1f}, \"unit\": \"MB/s\", "
      "\"batches\": {}, \"consumer_core_share\": {:.4f}, \"server_core_share\": {:.4f}, "
      "\"cpu_ms_per_batch\": {:.3f}, \"least_over_most\": {:.3f}, \"ms\": [{:.3f}]}}\n",
      load.transport, 1e-6 * static_cast<double>(all.bytes) / wall, all.batches, consumer / wall,
      server / wall, 1e3 * (consumer + server) / static_cast<double>(all.batches),
      static_cast<double>(least.batches) / static_cast<double>(most.batches),
      fmt::join(all.ms, ", "));
}

/// Parses a positive number.
template <class T>
T number_in(std::string_view text) {
  T value{};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size() || !(value > 0))
    throw ConfigError(fmt::format("'{}' is not a positive number", text));
  return value;
}

void read_option(std::string_view argument, Load& load) {
  const auto equals = std::min(argument.find('='), argument.size() - 1);
  const auto name = argument.substr(0, equals), value = argument.substr(equals + 1);
  if (name == "made")
    load.made = number_in<double>(value);
  else if (name == "taken")
    load.taken = number_in<double>(value);
  else if (name == "consumers")
    load.consumers = number_in<int>(value);
  else if (name == "servers")
    load.servers = number_in<int>(value);
  else
    throw ConfigError(fmt::format("unknown option '{}'", argument));
}

}  // namespace

int main(int argc, char** argv) {
  spdlog::set_level(spdlog::level::warn);
  constexpr std::string_view kWays[] = {"tcp", "curve", "ipc", "shared", "socket", "checked"};
  try {
    if (argc < 3 || !std::ranges::count(kWays, argv[1]))
      throw ConfigError(
          fmt::format("usage: bench_serving {} SECONDS [made=RATE] [taken=RATE] [consumers=N] "
                      "[servers=N]",
                      fmt::join(kWays, "|")));
    Load load{argv[1]};
    for (int i = 3; i < argc; ++i) read_option(argv[i], load);
    measure(load, number_in<double>(argv[2]));
  } catch (const std::exception& problem) {
    fmt::print(stderr, "{}\n", problem.what());
    return 2;
  }
}
