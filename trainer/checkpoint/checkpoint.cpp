#include "millrace/trainer/checkpoint/checkpoint.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "millrace/base/digest.h"
#include "millrace/base/disk/part_folder.h"
#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/log.h"
#include "millrace/base/repeated.h"
#include "millrace/models/weights/formats.h"
#include "millrace/models/weights/model_card.h"
#include "millrace/models/weights/sealed_folder.h"

namespace millrace {

// JSON members of state.json.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LossScale, factor, good_steps)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Cursor, next, pending)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Position, step, progress, images, bad_steps, overflow_steps,
                                   bad_in_a_row, returns, rate_factor, returned_to, failing_step,
                                   loss_scale, cursor)

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kCheckpointFormat = 1;

constexpr auto kModel = "model.safetensors";
constexpr auto kOptimizer = "optimizer.safetensors";

/// Returns the metadata of a weight file, with the position and scores of the training. `whose`:
/// name of the callback that keeps the weights, which prefixes its published scores; empty = the
/// trained weights.
Metadata metadata_of(const Checkpoint& checkpoint, const std::string& whose = "") {
  std::map<std::string, double> scores;
  for (const std::string name : {"bbox/AP", "segm/AP"}) {
    const auto last = checkpoint.latest.find(whose.empty() ? name : whose + "/" + name);
    if (last != checkpoint.latest.end() && std::isfinite(last->second)) scores[name] = last->second;
  }
  return trained_further(checkpoint.metadata, checkpoint.at.step, checkpoint.at.progress,
                         std::move(scores));
}

std::string tensor_file(const std::string& callback) {
  return "callback." + callback + ".safetensors";
}

/// Returns the names of a checkpoint's files except state.json.
std::vector<std::string> payload(const Checkpoint& checkpoint) {
  std::vector<std::string> names = {kModel, kOptimizer, kCheckpointConfig};
  for (const auto& [callback, tensors] : checkpoint.callback_tensors)
    names.push_back(tensor_file(callback));
  return names;
}

/// Writes the files except state.json and returns their digests by name. `before`: the previous
/// checkpoint, or empty; unchanged files share storage with it if the file system supports that.
std::map<std::string, std::string> write_payload(const Checkpoint& checkpoint,
                                                 const fs::path& folder, const fs::path& before) {
  std::map<std::string, std::string> digests;
  const auto write = [&](const std::string& name, const NamedTensors& tensors,
                         const Metadata& metadata) {
    digests[name] =
        hex(write_safetensors(folder / name, tensors,
                              metadata.empty() ? metadata : with_content_digest(metadata, tensors),
                              before.empty() ? before : before / name));
  };
  write(kModel, checkpoint.model, metadata_of(checkpoint));
  write(kOptimizer, checkpoint.optimizer, {});
  for (const auto& [callback, tensors] : checkpoint.callback_tensors)
    write(tensor_file(callback), tensors, metadata_of(checkpoint, callback));
  write_file_atomically(folder / kCheckpointConfig, checkpoint.config);
  digests[kCheckpointConfig] = digest_text(checkpoint.config);
  return digests;
}

json state_of(const Checkpoint& checkpoint, const std::map<std::string, std::string>& files) {
  json callback_tensors = json::array();
  for (const auto& [callback, tensors] : checkpoint.callback_tensors)
    callback_tensors.push_back(callback);
  json state = checkpoint.at;
  state.update({{"format", kCheckpointFormat},
                {"seed", checkpoint.seed},
                {"epoch_size", checkpoint.epoch_size},
                {"classes", checkpoint.classes},
                {"hyper", checkpoint.hyper},
                {"latest", checkpoint.latest},
                {"callbacks", checkpoint.callbacks},
                {"callback_tensors", callback_tensors},
                {"files", files}});
  return state;
}

/// Reads everything except tensors and configuration; callback_tensors gets only names. Throws
/// NewerCheckpoint or Error.
void read_state(const SealedState& sealed, Checkpoint& checkpoint) {
  sealed.read([&](const json& state) {
    const auto format = state.at("format").get<std::int64_t>();
    if (format > kCheckpointFormat)
      throw NewerCheckpoint(fmt::format(
          "was written by a newer version (format {}; this version reads {}); resume with that "
          "version, or move this checkpoint away to resume from the previous one",
          format, kCheckpointFormat));
    state.get_to(checkpoint.at);
    state.at("seed").get_to(checkpoint.seed);
    state.at("epoch_size").get_to(checkpoint.epoch_size);
    state.at("classes").get_to(checkpoint.classes);
    state.at("hyper").get_to(checkpoint.hyper);
    for (const auto& [name, value] : state.at("latest").items())
      checkpoint.latest[name] =
          value.is_null() ? std::nan("") : value.get<double>();  // JSON has no NaN
    state.at("callbacks").get_to(checkpoint.callbacks);
    for (const auto& name : state.at("callback_tensors"))
      checkpoint.callback_tensors[name.get<std::string>()];
  });
}

/// Removes unfinished files that a killed process left.
void remove_parts(const fs::path& folder) {
  std::vector<fs::path> parts;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const auto name = entry.path().filename().string();
    if (name.ends_with(".part") && (name.starts_with("step-") || name.starts_with("latest")))
      parts.push_back(entry.path());
  }
  for (const auto& part : parts) fs::remove_all(part);
}

/// Makes `latest` a link to a checkpoint. Only warns if that fails, since this program never reads
/// it.
void point_latest_at(const fs::path& checkpoint) {
  const auto latest = checkpoint.parent_path() / "latest",
             part = checkpoint.parent_path() / "latest.part";
  std::error_code problem;
  fs::remove(part, problem);  // file of a killed process
  fs::create_symlink(checkpoint.filename(), part, problem);
  if (!problem) problem = rename_path(part, latest);
  if (!problem) return;
  log_warning("cannot link {} to {}: {}; move away the existing file", latest.string(),
              checkpoint.filename().string(), problem.message());
  fs::remove(part, problem);
}

}  // namespace

fs::path checkpoint_of(const fs::path& folder, std::int64_t step) {
  return folder / fmt::format("step-{:06}", step);
}

std::int64_t step_of(const fs::path& checkpoint) {
  const auto name = checkpoint.filename().string();
  constexpr std::size_t kMaxDigits = 18;  // number of digits that fits into a std::int64_t
  if (!name.starts_with("step-") || name.size() == 5 || name.size() > 5 + kMaxDigits ||
      name.find_first_not_of("0123456789", 5) != std::string::npos)
    return -1;
  return std::stoll(name.substr(5));
}

fs::path write_checkpoint(const fs::path& folder, const Checkpoint& checkpoint) {
  const auto whole = checkpoint_of(folder, checkpoint.at.step);
  try {
    make_writable_folder(folder);
    remove_parts(folder);
    const auto before = list_checkpoints(folder);
    PartFolder part(whole, PartFolder::Existing::replace);
    const auto files =
        write_payload(checkpoint, part.path(), before.empty() ? fs::path() : before.back());
    write_sealed_state(part.path(), state_of(checkpoint, files));
    part.publish();
    point_latest_at(whole);
    return whole;
  } catch (const std::exception& problem) {
    throw Error(fmt::format("cannot write the checkpoint of step {}: {}", checkpoint.at.step,
                            problem.what()));
  }
}

Checkpoint read_checkpoint(const fs::path& checkpoint) {
  Checkpoint result;
  in_checkpoint(checkpoint, [&] {
    const SealedState state(checkpoint);
    read_state(state, result);
    for (const auto& name : payload(result)) state.check(name);
  });
  result.model = read_safetensors(checkpoint / kModel);
  result.optimizer = read_safetensors(checkpoint / kOptimizer);
  for (auto& [callback, tensors] : result.callback_tensors)
    tensors = read_safetensors(checkpoint / tensor_file(callback));
  result.config = read_file(checkpoint / kCheckpointConfig);
  return result;
}

std::vector<fs::path> list_checkpoints(const fs::path& folder) {
  std::vector<fs::path> found;
  if (!fs::is_directory(folder)) return found;
  for (const auto& entry : fs::directory_iterator(folder))
    if (!entry.is_symlink() && entry.is_directory() && step_of(entry.path()) >= 0)
      found.push_back(entry.path());
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return step_of(a) < step_of(b); });
  return found;
}

std::optional<Checkpoint> newest_checkpoint(const fs::path& folder) {
  const auto all = list_checkpoints(folder);
  for (auto candidate = all.rbegin(); candidate != all.rend(); ++candidate) {
    std::optional<Checkpoint> newest;
    try {
      newest = read_checkpoint(*candidate);
    } catch (const NewerCheckpoint&) {
      throw;
    } catch (const Error& problem) {
      log_warning("{}; trying the previous checkpoint", problem.what());
      continue;
    }
    std::error_code no_link;
    if (fs::read_symlink(folder / "latest", no_link) != candidate->filename())
      point_latest_at(*candidate);
    return newest;
  }
  if (!all.empty())
    throw Error(
        fmt::format("every checkpoint in {} is damaged (see the warnings above). Restore a copy of "
                    "one, or start a new run without --resume; model.weights can be any undamaged "
                    "model.safetensors of this folder",
                    folder.string()));
  return std::nullopt;
}

}  // namespace millrace
