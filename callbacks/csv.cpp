// [callbacks.csv]: writes every scalar to metrics.csv, one row per value, since metrics such as AP
// appear late. A pivot table makes a column of each name.
#include <fmt/format.h>

#include "millrace/callbacks/common/scalar_writer.h"

namespace millrace {
namespace {

constexpr std::string_view kHead = "step,epoch,name,value\n";

/// Returns a field in the format of RFC 4180.
std::string field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

class WriteCsv final : public ScalarWriter {
  void open(const TrainState& state) override {
    const auto file = state.folder / "metrics.csv";
    file_.open(state, file);
    if (!std::filesystem::exists(file) || std::filesystem::is_empty(file)) file_.append(kHead);
  }

  std::string encode(const Moment& of, const Scalars& scalars) override {
    std::string rows;
    for (const auto& [name, value] : scalars)
      rows += fmt::format("{},{},{},{}\n", of.step, of.progress, field(name), value);
    return rows;
  }
};

MILLRACE_REGISTER(
    register_callback<WriteCsv>("csv", "writes every metric to metrics.csv, one row per value"));

}  // namespace
}  // namespace millrace
