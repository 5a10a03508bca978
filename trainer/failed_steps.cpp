#include "millrace/trainer/failed_steps.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "millrace/base/disk/part_folder.h"
#include "millrace/base/files.h"
#include "millrace/base/log.h"
#include "millrace/dataflow/store/batch_codec.h"
#include "millrace/trainer/checkpoint/checkpoint.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::int64_t kMaxBadInARow = 10;  // number of consecutive bad steps that ends training
constexpr std::int64_t kRecords = 3;        // maximum number of records per run
constexpr int kStepFormat = 1;
constexpr std::int64_t kMaxBatches = 4096;  // maximum of optimizer.accumulate
constexpr auto kRecord = "record.json";
constexpr auto kModelFile = "model.safetensors";
constexpr auto kConfigFile = "config.toml";

fs::path batch_file(const fs::path& folder, std::size_t number, const char* ending) {
  return folder / fmt::format("batch-{}.{}", number, ending);
}

/// JSON has no infinities, so they are written as strings.
json number(double value) {
  return std::isfinite(value) ? json(value) : json(fmt::format("{}", value));
}
double number(const json& value) {
  return value.is_string() ? std::strtod(value.get<std::string>().c_str(), nullptr)
                           : value.get<double>();
}

json to_json(const StepRecord& record) {
  auto scalars = json::array();
  for (const auto& [name, value, kind] : record.scalars) scalars.push_back({name, number(value)});
  return {{"format", kStepFormat},
          {"seed", record.info.seed},
          {"step", record.info.step},
          {"figures", record.with_metrics},
          {"batches", record.batches.size()},
          {"lr", record.lr},
          {"loss_scale",
           {{"factor", record.loss_scale.factor}, {"good_steps", record.loss_scale.good_steps}}},
          {"hyper", record.hyper},
          {"scalars", scalars},
          {"rejected", record.rejected},
          {"classes", record.classes}};
}

StepRecord from_json(const json& saved) {
  if (saved.at("format") != kStepFormat) throw Error("its format is that of another version");
  StepRecord record;
  saved.at("seed").get_to(record.info.seed);
  saved.at("step").get_to(record.info.step);
  saved.at("figures").get_to(record.with_metrics);
  const auto batches = saved.at("batches").get<std::int64_t>();
  if (batches < 1 || batches > kMaxBatches)
    throw Error(fmt::format("invalid number of batches: {}", batches));
  record.batches.resize(static_cast<std::size_t>(batches));
  saved.at("lr").get_to(record.lr);
  saved.at("loss_scale").at("factor").get_to(record.loss_scale.factor);
  saved.at("loss_scale").at("good_steps").get_to(record.loss_scale.good_steps);
  saved.at("hyper").get_to(record.hyper);
  for (const auto& scalar : saved.at("scalars"))
    record.scalars.push_back({scalar.at(0).get<std::string>(), number(scalar.at(1))});
  saved.at("rejected").get_to(record.rejected);
  saved.at("classes").get_to(record.classes);
  return record;
}

void write_batch(const fs::path& folder, std::size_t number, const Batch& batch) {
  write_file_atomically(batch_file(folder, number, "msgpack"), encode_header(batch));
  write_file_atomically(batch_file(folder, number, "rgb"),
                        {reinterpret_cast<const char*>(batch.pixels.get()), batch.bytes()});
}

Batch read_batch(const fs::path& folder, std::size_t number) {
  const auto pixels = read_file(batch_file(folder, number, "rgb"));
  const Frame frame{std::make_shared<std::uint8_t[]>(pixels.size()), pixels.size()};
  if (!pixels.empty()) std::memcpy(frame.bytes.get(), pixels.data(), pixels.size());
  const auto header = batch_file(folder, number, "msgpack");
  return decode_batch(read_file(header), frame, header.string());
}

/// Records a step and returns the end of the warning about it.
std::string keep(const StepRecord& record, const std::filesystem::path& run) {
  try {
    const auto folder = write_step_record(run / "diverged", record);
    return fmt::format("; to repeat it: trainer run --replay {}", folder.string());
  } catch (const Error& problem) {
    return fmt::format("; cannot record it: {}", problem.what());
  }
}

}  // namespace

fs::path write_step_record(const fs::path& folder, const StepRecord& record) try {
  const auto whole = checkpoint_of(folder, record.info.step + 1);
  PartFolder part(whole, PartFolder::Existing::replace);
  for (std::size_t i = 0; i < record.batches.size(); ++i)
    write_batch(part.path(), i, record.batches[i]);
  write_safetensors(part.path() / kModelFile, record.model);
  write_file_atomically(part.path() / kConfigFile, record.config);
  write_file_atomically(part.path() / kRecord, to_json(record).dump(1) + "\n");
  part.publish();
  return whole;
} catch (const fs::filesystem_error& problem) {
  throw Error(problem.what());
}

StepRecord read_step_record(const fs::path& folder) {
  StepRecord record;
  try {
    record = from_json(json::parse(read_file(folder / kRecord)));
  } catch (const json::exception& problem) {
    throw Error(fmt::format("{} is not a record of a step: {}: {}", folder.string(), kRecord,
                            problem.what()));
  } catch (const Error& problem) {
    throw Error(fmt::format("{} is not a record of a step: {}", folder.string(), problem.what()));
  }
  record.config = read_file(folder / kConfigFile);
  record.model = read_safetensors(folder / kModelFile);
  for (std::size_t i = 0; i < record.batches.size(); ++i) record.batches[i] = read_batch(folder, i);
  return record;
}

void reject_step(Position& at, const StepRecord& record, const std::filesystem::path& run,
                 const TrainOptions& train) {
  const auto kept = run.empty() || at.bad_steps >= kRecords ? "" : keep(record, run);
  at.bad_steps += 1;
  at.bad_in_a_row += 1;
  const auto message = fmt::format("step {}: {}", at.step + 1, record.rejected);
  if (at.bad_in_a_row >= kMaxBadInARow && !train.returns()) {
    auto after = at;
    after.step += 1;
    throw Diverged(fmt::format("{}; this is the {}th such step in a row: lower optimizer.lr, set "
                               "optimizer.clip_norm, or check the data",
                               message, at.bad_in_a_row),
                   std::move(after));
  }
  const bool is_news = at.bad_in_a_row == 1 || !kept.empty();
  log_formatted(is_news ? spdlog::level::warn : spdlog::level::debug, "{}; skipped the step{}",
                fmt::make_format_args(message, kept));
}

void check_has_learned(const Position& at) {
  const bool took_none = at.bad_in_a_row + at.overflow_steps >= at.step;
  // A training that only searched for its loss scale has lost nothing.
  if (at.bad_in_a_row == 0 || (!took_none && 2 * at.bad_in_a_row <= at.step)) return;
  const auto why = took_none ? "every step was skipped"
                             : fmt::format("the last {} steps were skipped", at.bad_in_a_row);
  throw Diverged(fmt::format("training ended after step {}, but {}: lower optimizer.lr, set "
                             "optimizer.clip_norm, or check the initial weights and the data",
                             at.step, why),
                 at);
}

bool has_diverged(const Position& at, const TrainOptions& train) {
  return train.returns() && at.bad_in_a_row >= kMaxBadInARow;
}

}  // namespace millrace
