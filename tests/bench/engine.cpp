// Cost of the engine itself: samples that need no work, through one stage and through ten.
#include <benchmark/benchmark.h>
#include <oneapi/tbb/global_control.h>

#include "millrace/dataflow/engine/pipeline.h"

namespace millrace {
namespace {

struct Numbers {
  std::int64_t count = 0;
  std::int64_t size() const { return count; }
  std::int64_t operator[](std::int64_t index) const { return index; }
};

constexpr int kGroup = 16;

/// Arguments: number of stages up to the grouping stage, threads. Each iteration is one group of 16
/// samples.
void engine(benchmark::State& state) {
  auto pipeline = from(Numbers{1'000'000});
  for (auto stage = state.range(0); stage > 1; --stage)
    pipeline = std::move(pipeline).map("pass", [](std::int64_t number) { return number; });
  const auto flow = std::move(pipeline).group(kGroup).start(
      {.shuffle = {true}, .epochs = 0, .threads = static_cast<int>(state.range(1))});
  for (auto _ : state) benchmark::DoNotOptimize(flow->next()->value);
  using Counter = benchmark::Counter;
  state.counters["s_per_sample"] =
      Counter(kGroup, Counter::kIsIterationInvariantRate | Counter::kInvert);
}

BENCHMARK(engine)
    ->ArgNames({"stages", "threads"})
    ->ArgsProduct({{1, 10}, {1, 2}})
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) {
  const oneapi::tbb::global_control workers(oneapi::tbb::global_control::max_allowed_parallelism,
                                            3);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
