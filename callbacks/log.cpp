// [callbacks.log]: writes every scalar to metrics.jsonl, one JSON object per line, as it becomes
// known.
#include <nlohmann/json.hpp>

#include "millrace/callbacks/common/scalar_writer.h"

namespace millrace {
namespace {

class WriteMetrics final : public ScalarWriter {
 public:
  static constexpr bool kByDefault = true;

 private:
  void open(const TrainState& state) override { file_.open(state, state.folder / "metrics.jsonl"); }

  std::string encode(const Moment& of, const Scalars& scalars) override {
    nlohmann::ordered_json line = {
        {"step", of.step}, {"epoch", of.progress}, {"time", seconds_since_1970()}};
    for (const auto& [name, value] : scalars) line[name] = value;
    return line.dump() + "\n";
  }
};

MILLRACE_REGISTER(register_callback<WriteMetrics>("log", "writes every metric to metrics.jsonl"));

}  // namespace
}  // namespace millrace
