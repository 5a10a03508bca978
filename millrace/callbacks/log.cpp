// [callbacks.log]: every scalar into the run's metrics.jsonl, a JSON object a line, in the order in which figures became
// known.
#include <nlohmann/json.hpp>

#include "millrace/callbacks/common/scalar_writer.h"

namespace millrace {
namespace {

class WriteMetrics final : public ScalarWriter {
  void open(const TrainState& state) override { file_.open(state, state.folder / "metrics.jsonl"); }

  std::string encode(const Moment& of, const Scalars& scalars) override {
    nlohmann::ordered_json line = {
        {"step", of.step}, {"epoch", of.progress}, {"time", seconds_since_1970()}};
    for (const auto& [name, value] : scalars) line[name] = value;
    return line.dump() + "\n";
  }
};

MILLRACE_REGISTER(callbacks().add<ScalarWriterOptions>(
    "log", "writes every scalar to metrics.jsonl",
    {[](const Config&) -> std::unique_ptr<Callback> { return std::make_unique<WriteMetrics>(); },
     /*by_default=*/true}));

}  // namespace
}  // namespace millrace
