// bench_serving tcp|ipc|shared SECONDS [BATCHES_PER_S]: reads batches of 4 x 800 x 1216 x 3 bytes
// and their boxes from a data server in another process, as fast as they come or at that rate, and
// prints a line of JSON. The server has eight ready, more than a last-level cache holds.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <string>
#include <thread>

#include "millrace/base/clock.h"
#include "millrace/base/log.h"
#include "millrace/base/process/process_usage.h"
#include "millrace/base/random.h"
#include "millrace/dataflow/serving/remote_flow.h"
#include "millrace/dataflow/serving/server.h"

namespace {

using namespace millrace;

constexpr int kImages = 4, kHeight = 800, kWidth = 1216, kDistinct = 8;

Batch make_batch(Rng& rng, const BufferPool& pool) {
  Batch batch;
  batch.height = kHeight;
  batch.width = kWidth;
  for (int i = 0; i < kImages; ++i) {
    batch.images.push_back({i, kWidth, kHeight, kWidth, kHeight, 1, 1});
    Instances objects;
    for (auto count = rng.between(1, 19); count > 0; --count)
      append(objects, {{{1, 2, 30, static_cast<float>(rng.uniform(3, 800))}},
                       {0},
                       {0},
                       {coco::Segmentation{}}});
    batch.objects.push_back(std::move(objects));
  }
  batch.pixels = pool.acquire(batch.bytes());
  for (std::size_t k = 0; k < batch.bytes(); k += 8) {
    const auto bits = rng();
    std::memcpy(batch.pixels.get() + k, &bits, 8);
  }
  return batch;
}

/// Gives ready batches in turn.
class Ready final : public NumberedFlow<Batch> {
 public:
  Ready(const std::vector<Batch>& batches, WakeUp wake)
      : batches_(batches), wake_(std::move(wake)) {}
  void ask(std::int64_t number) override {
    asked_.push_back(number);
    wake_();
  }
  std::optional<Made<Batch>> take() override {
    if (asked_.empty()) return std::nullopt;
    const auto k = asked_.front();
    asked_.pop_front();
    return Made<Batch>{
        k,
        Delivery<Batch>{batches_[static_cast<std::size_t>(k) % kDistinct], {k, {}}, 0, 0, k},
        nullptr,
        {}};
  }
  std::int64_t epoch_size() const override { return 1000; }
  FlowReport report() const override { return {}; }

 private:
  const std::vector<Batch>& batches_;
  const WakeUp wake_;
  std::deque<std::int64_t> asked_;
};

/// Serves until the parent has ended or kills this process.
[[noreturn]] void serve(const std::string& endpoint, bool shared) {
  const auto memory = shared ? std::make_shared<serving::SharedMemory>() : nullptr;
  const auto pool = shared ? BufferPool(memory->source()) : BufferPool();
  Rng rng{1};
  std::vector<Batch> batches;
  for (int k = 0; k < kDistinct; ++k) batches.push_back(make_batch(rng, pool));
  serving::BatchServer server(
      [&](const serving::Stream&, WakeUp wake) {
        return std::make_unique<Ready>(batches, std::move(wake));
      },
      {}, 1000, {.door = {.bind = endpoint}, .memory = memory});
  server.run([] { return ::getppid() != 1; });
  ::_exit(0);
}

int read(const std::string& way, double seconds, double rate) {
  const auto name = std::to_string(::getpid());
  const auto endpoint = way == "tcp"
                            ? "tcp://127.0.0.1:" + std::to_string(20'000 + ::getpid() % 20'000)
                            : "ipc:///tmp/bench-serving-" + name;
  const pid_t child = ::fork();
  if (child < 0) {
    std::perror("bench_serving: fork");
    return 1;
  }
  if (child == 0) serve(endpoint, way == "shared");
  std::int64_t batches = 0, bytes = 0;
  double wall = 0, cpu = 0;
  {
    const auto flow = serving::connect_flow({.servers = {endpoint}});
    auto due = Clock::now();
    const auto take = [&] {
      const auto item = flow->next();
      if (rate > 0)
        std::this_thread::sleep_until(
            due += std::chrono::round<Clock::duration>(std::chrono::duration<double>(1 / rate)));
      return static_cast<std::int64_t>(item->value.bytes());
    };
    // Until as many wait for the consumer as ever will: from then on one comes for each that goes.
    for (int k = 0; k < 4 * kDistinct; ++k) take();
    const auto cpu_before = cpu_seconds();
    const auto start = Clock::now();
    while (wall < seconds) {
      bytes += take();
      ++batches;
      wall = seconds_since(start);
    }
    cpu = cpu_seconds() - cpu_before;
  }
  ::kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  if (way != "tcp") std::filesystem::remove(endpoint.substr(6));
  const auto per_batch = [&](double value) { return value / static_cast<double>(batches); };
  fmt::print(
      "{{\"peer\": \"millrace\", \"transport\": \"{}\", \"value\": {:.1f}, \"unit\": \"MB/s\", "
      "\"batches_per_s\": "
      "{:.1f}, \"consumer_cpu_ms_per_batch\": {:.3f}, \"consumer_core_share\": {:.4f}}}\n",
      way, 1e-6 * static_cast<double>(bytes) / wall, static_cast<double>(batches) / wall,
      per_batch(1e3 * cpu), cpu / wall);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  spdlog::set_level(spdlog::level::warn);
  if (argc < 3) {
    fmt::print(stderr, "usage: bench_serving tcp|ipc|shared SECONDS [BATCHES_PER_S]\n");
    return 2;
  }
  return read(argv[1], std::atof(argv[2]), argc > 3 ? std::atof(argv[3]) : 0);
}
