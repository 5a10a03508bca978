// [callbacks.tensorboard]: writes scalars, pictures and, if requested, histograms of parameters and
// of the steps' scalars as TensorBoard's event files.
#include <ATen/core/Tensor.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <map>
#include <optional>
#include <vector>

#include "millrace/base/files.h"
#include "millrace/base/log.h"
#include "millrace/callbacks/common/event_records.h"
#include "millrace/callbacks/common/scalar_writer.h"
#include "millrace/dataflow/image/image_file.h"
#include "millrace/models/detector/detector.h"
#include "millrace/trainer/every.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "events.out.tfevents.";  // TensorBoard searches for "tfevents"

struct TensorBoardOptions : ScalarWriterOptions {
  std::string histograms;
  void describe(Options& o) {
    ScalarWriterOptions::describe(o);
    o.add("histograms", histograms,
          "interval of histograms of all trained parameters, and of the losses and metrics of the "
          "steps since the last ones; empty = never")
        .affects(Affects::run);
  }

  void check(const Config& table) const { check_period(table, "histograms", histograms); }
};

/// Every process begins a new file, whose first record makes an open TensorBoard discard later
/// steps. Files of earlier processes are truncated to the checkpoint.
class WriteTensorBoard final : public ScalarWriter, public SavesTensors {
 public:
  using Options = TensorBoardOptions;

  WriteTensorBoard(const Options& options, std::string name) : name_(std::move(name)) {
    if (!options.histograms.empty()) histograms_.emplace(parse_period(options.histograms));
  }

  void on_picture(const TrainState& state, const Picture& picture) override {
    std::string record;
    try {
      const auto jpeg = read_file(picture.file);
      const auto pixels = decode_rgb(jpeg, picture.file.string());
      record = image_record(now(state.at.step), picture.name, jpeg, pixels.cols, pixels.rows);
    } catch (const std::exception& problem) {  // a failure to write does not end the training
      return log_warning("callback '{}': skipped a picture: {}", name_, problem.what());
    }
    file_.append(record);
  }

  void after_step(const TrainState& state) override {
    ScalarWriter::after_step(state);
    if (!histograms_) return;
    for (const auto& [name, value, kind] : state.scalars)
      if (std::isfinite(value)) seen_[name].push_back(static_cast<float>(value));
    if (histograms_->is_due(state)) write_histograms(state);
  }

  NamedTensors save_tensors() const override {
    NamedTensors tensors;
    for (const auto& [name, values] : seen_) tensors.emplace_back(name, at::tensor(values));
    return tensors;
  }
  void load_tensors(const TrainState&, const NamedTensors& tensors) override {
    for (const auto& [name, values] : tensors) {
      const auto* first = values.const_data_ptr<float>();
      seen_[name].assign(first, first + values.numel());
    }
  }

 private:
  static EventTime now(std::int64_t step) { return {step, seconds_since_1970()}; }

  void open(const TrainState& state) override {
    const auto then = file_.resume_mark(state);
    const auto folder = state.folder / "tensorboard";
    make_writable_folder(folder);
    // Number in the file name, which sorts the files.
    auto number = static_cast<std::int64_t>(seconds_since_1970());
    std::vector<fs::path> late;
    for (const auto& entry : fs::directory_iterator(folder)) {
      const auto name = entry.path().filename().string();
      if (!name.starts_with(kPrefix)) continue;
      if (then && name > then->file)
        late.push_back(entry.path());
      else
        number = std::max(number, number_of(name) + 1);
    }
    for (const auto& file : late) fs::remove(file);
    file_.open(state, folder / fmt::format("{}{:010}.millrace", kPrefix, number));
    file_.append(version_record(seconds_since_1970()) + restart_record(now(state.at.step + 1)));
  }

  static std::int64_t number_of(const std::string& name) {
    return std::strtoll(name.c_str() + kPrefix.size(), nullptr, 10);
  }

  std::string encode(const Moment& of, const Scalars& scalars) override {
    std::string records;
    for (const auto& [name, value] : scalars) records += scalar_record(now(of.step), name, value);
    return records;
  }

  void write_histograms(const TrainState& state) {
    const auto write = [&](const std::string& name, std::span<const float> values) {
      file_.append(histogram_record(now(state.at.step), name, histogram_of(values)));
    };
    for (const auto& parameter : state.model.parameters()) {
      if (!parameter.trainable()) continue;
      const auto values = parameter.value.detach().to(at::kCPU, at::kFloat).contiguous();
      write(parameter.name,
            {values.const_data_ptr<float>(), static_cast<std::size_t>(values.numel())});
    }
    // TensorBoard accepts a name for one kind of metric only.
    for (const auto& [name, values] : seen_) write("histogram/" + name, values);
    seen_.clear();
  }

  std::string name_;
  std::optional<Every> histograms_;
  // Values of each step since the last histograms, by name.
  std::map<std::string, std::vector<float>> seen_;
};

MILLRACE_REGISTER(register_callback<WriteTensorBoard>(
    "tensorboard", "writes metrics, pictures and histograms as TensorBoard event files"));

}  // namespace
}  // namespace millrace
