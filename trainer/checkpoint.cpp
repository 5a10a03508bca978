#include "trainer/checkpoint.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/digest.h"
#include "base/errors.h"
#include "base/files.h"
#include "base/log.h"
#include "trainer/weights/seal.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr auto kModel = "model.safetensors";
constexpr auto kOptimizer = "optimizer.safetensors";
constexpr auto kConfig = "config.toml";
constexpr auto kState = "state.json";

constexpr int kFormat = 1;

/// Written by a program that knows more than this one.
struct NewerFormat : Error {
  using Error::Error;
};

std::string digest_text(const std::string& bytes) {
  return hex(digest(bytes.data(), bytes.size()));
}

std::string tensor_file(const std::string& callback) {
  return "callback." + callback + ".safetensors";
}

/// The files of a checkpoint but for kState.
std::vector<std::string> payload(const Checkpoint& checkpoint) {
  std::vector<std::string> names = {kModel, kOptimizer, kConfig};
  for (const auto& [callback, tensors] : checkpoint.callback_tensors)
    names.push_back(tensor_file(callback));
  return names;
}

/// Writes the files of a checkpoint but for kState; their digests by name.
std::map<std::string, std::string> write_payload(const Checkpoint& checkpoint,
                                                 const fs::path& folder) {
  std::map<std::string, std::string> digests;
  const auto write = [&](const std::string& name, const NamedTensors& tensors,
                         const Metadata& metadata) {
    digests[name] = hex(write_safetensors(folder / name, tensors,
                                          metadata.empty() ? metadata : sealed(metadata, tensors)));
  };
  write(kModel, checkpoint.model, checkpoint.metadata);
  write(kOptimizer, checkpoint.optimizer, {});
  for (const auto& [callback, tensors] : checkpoint.callback_tensors)
    write(tensor_file(callback), tensors, checkpoint.metadata);  // weights like the model's
  write_file_atomically(folder / kConfig, checkpoint.config);
  digests[kConfig] = digest_text(checkpoint.config);
  return digests;
}

json state_of(const Checkpoint& checkpoint, const std::map<std::string, std::string>& files) {
  const auto& at = checkpoint.at;
  json callback_tensors = json::array();
  for (const auto& [callback, tensors] : checkpoint.callback_tensors)
    callback_tensors.push_back(callback);
  return {
      {"format", kFormat},
      {"step", at.step},
      {"progress", at.progress},
      {"images", at.images},
      {"bad_steps", at.bad_steps},
      {"overflow_steps", at.overflow_steps},
      {"bad_in_a_row", at.bad_in_a_row},
      {"loss_scale", {{"factor", at.loss_scale.factor}, {"good_steps", at.loss_scale.good_steps}}},
      {"seed", checkpoint.seed},
      {"epoch_size", checkpoint.epoch_size},
      {"classes", checkpoint.classes},
      {"cursor", {{"next", at.cursor.next}, {"pending", at.cursor.pending}}},
      {"hyper", checkpoint.hyper},
      {"latest", checkpoint.latest},
      {"callbacks", checkpoint.callbacks},
      {"callback_tensors", callback_tensors},
      {"files", files}};
}

/// What JSON's library says, without its own number for it.
std::string sentence(const json::exception& problem) {
  const std::string_view what = problem.what();
  const auto tag = what.find("] ");
  return std::string(what.substr(tag == what.npos ? 0 : tag + 2));
}

/// The state of a checkpoint, whose bytes are those that were written. Throws Error.
json read_sealed(const fs::path& checkpoint) {
  const auto sealed =
      json::parse(read_file(checkpoint / kState), nullptr, /*allow_exceptions=*/false);
  if (!sealed.is_object() || !sealed.contains("state") || !sealed.contains("digest"))
    throw Error(fmt::format("{} is not what was written: it is cut off, or overwritten", kState));
  if (sealed.at("digest") != digest_text(sealed.at("state").dump()))
    throw Error(fmt::format("the bytes of {} have changed", kState));
  return sealed.at("state");
}

/// Throws Error where a file's bytes are not those that the state has a digest of.
void check_bytes(const json& state, const fs::path& checkpoint, const std::string& name) {
  const auto bytes = map_file(checkpoint / name);
  if (state.at("files").at(name) != hex(digest(bytes.data.get(), bytes.size)))
    throw Error(fmt::format("the bytes of {} have changed", name));
}

/// Does `work` with what a checkpoint says; what goes wrong becomes an Error that names the checkpoint.
template <class Work>
auto naming(const fs::path& checkpoint, Work work) {
  const auto damaged = [&](const std::string& why) {
    return Error(fmt::format("the checkpoint {} is damaged: {}", checkpoint.string(), why));
  };
  try {
    return work();
  } catch (const NewerFormat& problem) {
    throw NewerFormat(fmt::format("the checkpoint {} {}", checkpoint.string(), problem.what()));
  } catch (const json::exception& problem) {
    throw damaged(fmt::format("{}: {}", kState, sentence(problem)));
  } catch (const std::exception& problem) {
    throw damaged(problem.what());
  }
}

/// The state of the checkpoint that a file lies in; null where it lies in none.
json state_around(const fs::path& file) {
  const auto folder = file.parent_path();
  std::error_code problem;
  if (!fs::exists(folder / kState, problem)) return nullptr;
  auto state = read_sealed(folder);
  return state.at("files").contains(file.filename().string()) ? state : json(nullptr);
}

void read_state(const json& state, Checkpoint& checkpoint) {
  auto& at = checkpoint.at;
  const auto format = state.at("format").get<std::int64_t>();
  if (format > kFormat)
    throw NewerFormat(fmt::format(
        "was written by a newer version (format {}; this one reads {}): resume with that version, "
        "or move this checkpoint away to go on from the one before",
        format, kFormat));
  state.at("step").get_to(at.step);
  state.at("progress").get_to(at.progress);
  state.at("images").get_to(at.images);
  state.at("bad_steps").get_to(at.bad_steps);
  at.overflow_steps = state.value("overflow_steps", at.overflow_steps);  // not in older ones
  state.at("bad_in_a_row").get_to(at.bad_in_a_row);
  if (const auto scale = state.find("loss_scale"); scale != state.end()) {  // not in older ones
    scale->at("factor").get_to(at.loss_scale.factor);
    scale->at("good_steps").get_to(at.loss_scale.good_steps);
  }
  state.at("seed").get_to(checkpoint.seed);
  checkpoint.epoch_size = state.value("epoch_size", std::int64_t{0});
  checkpoint.classes = state.value("classes", std::vector<std::string>());
  state.at("cursor").at("next").get_to(at.cursor.next);
  state.at("cursor").at("pending").get_to(at.cursor.pending);
  if (const auto hyper = state.find("hyper"); hyper != state.end()) hyper->get_to(checkpoint.hyper);
  if (const auto latest = state.find("latest"); latest != state.end())
    for (const auto& [name, value] : latest->items())
      checkpoint.latest[name] =
          value.is_null() ? std::nan("") : value.get<double>();  // JSON has no NaN
  state.at("callbacks").get_to(checkpoint.callbacks);
  if (const auto names = state.find("callback_tensors"); names != state.end())
    for (const auto& name : *names) checkpoint.callback_tensors[name.get<std::string>()];
}

/// What a killed process left half done here.
void remove_parts(const fs::path& folder) {
  std::vector<fs::path> parts;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const auto name = entry.path().filename().string();
    if (name.ends_with(".part") && (name.starts_with("step-") || name.starts_with("latest")))
      parts.push_back(entry.path());
  }
  for (const auto& part : parts) fs::remove_all(part);
}

/// Gives `part` the name `whole`. An older one of that name is at no instant missing, and is removed then.
void put_in_place(const fs::path& part, const fs::path& whole) {
  if (!fs::exists(whole)) return fs::rename(part, whole);
  if (::renameat2(AT_FDCWD, part.c_str(), AT_FDCWD, whole.c_str(), RENAME_EXCHANGE) != 0) {
    auto old = whole;  // a file system that cannot exchange two names
    old += ".replaced.part";
    fs::rename(whole, old);
    fs::rename(part, whole);
  }
}

/// Makes `latest` a link to a checkpoint. Nothing here reads it: where that cannot be, training goes on.
void point_latest_at(const fs::path& checkpoint) {
  const auto latest = checkpoint.parent_path() / "latest",
             part = checkpoint.parent_path() / "latest.part";
  std::error_code problem;
  fs::create_symlink(checkpoint.filename(), part, problem);
  if (!problem) fs::rename(part, latest, problem);
  if (!problem) return;
  spdlog::warn("{} cannot be made a link to {}: {}; move away what is there", latest.string(),
               checkpoint.filename().string(), problem.message());
  fs::remove(part, problem);
}

}  // namespace

fs::path checkpoint_of(const fs::path& folder, std::int64_t step) {
  return folder / fmt::format("step-{:06}", step);
}

std::int64_t step_of(const fs::path& checkpoint) {
  const auto name = checkpoint.filename().string();
  if (!name.starts_with("step-") || name.size() == 5 ||
      name.find_first_not_of("0123456789", 5) != std::string::npos)
    return -1;
  return std::stoll(name.substr(5));
}

fs::path write_checkpoint(const fs::path& folder, const Checkpoint& checkpoint) {
  const auto whole = checkpoint_of(folder, checkpoint.at.step);
  auto part = whole;
  part += ".part";
  try {
    make_writable_folder(folder);
    remove_parts(folder);
    make_writable_folder(part);
    const auto state = state_of(checkpoint, write_payload(checkpoint, part));
    const json sealed = {{"digest", digest_text(state.dump())}, {"state", state}};
    write_file_atomically(part / kState, sealed.dump(1) + "\n");
    sync_path(part);

    put_in_place(part, whole);
    point_latest_at(whole);
    sync_path(folder);
    remove_parts(folder);
    return whole;
  } catch (const std::exception& problem) {
    std::error_code nothing_there;
    fs::remove_all(part, nothing_there);
    throw Error(fmt::format("the checkpoint of step {} cannot be written: {}", checkpoint.at.step,
                            problem.what()));
  }
}

void check_file_of_checkpoint(const fs::path& file) {
  naming(file.parent_path(), [&] {
    const auto state = state_around(file);
    if (!state.is_null()) check_bytes(state, file.parent_path(), file.filename().string());
  });
}

std::optional<CheckpointOrigin> origin_of(const fs::path& file) {
  const auto folder = file.parent_path();
  return naming(folder, [&]() -> std::optional<CheckpointOrigin> {
    const auto state = state_around(file);
    if (state.is_null()) return std::nullopt;
    check_bytes(state, folder, kConfig);
    return CheckpointOrigin{read_file(folder / kConfig),
                            state.value("classes", std::vector<std::string>())};
  });
}

Checkpoint read_checkpoint(const fs::path& checkpoint) {
  Checkpoint result;
  naming(checkpoint, [&] {
    const auto state = read_sealed(checkpoint);
    read_state(state, result);
    for (const auto& name : payload(result)) check_bytes(state, checkpoint, name);
  });
  result.model = read_safetensors(checkpoint / kModel);
  result.optimizer = read_safetensors(checkpoint / kOptimizer);
  for (auto& [callback, tensors] : result.callback_tensors)
    tensors = read_safetensors(checkpoint / tensor_file(callback));
  result.config = read_file(checkpoint / kConfig);
  return result;
}

std::vector<fs::path> list_checkpoints(const fs::path& folder) {
  std::vector<fs::path> found;
  if (!fs::is_directory(folder)) return found;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_directory() && !entry.is_symlink() && step_of(entry.path()) >= 0)
      found.push_back(entry.path());
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return step_of(a) < step_of(b); });
  return found;
}

std::optional<Checkpoint> newest_checkpoint(const fs::path& folder) {
  const auto all = list_checkpoints(folder);
  for (auto candidate = all.rbegin(); candidate != all.rend(); ++candidate) {
    try {
      return read_checkpoint(*candidate);
    } catch (const NewerFormat&) {
      throw;
    } catch (const Error& problem) {
      spdlog::warn("{}; trying the one before", problem.what());
    }
  }
  if (!all.empty())
    throw Error(fmt::format(
        "every checkpoint in {} is damaged, as said above; nothing is trained anew over them. Put "
        "a copy of one back in its place, or start a new run without --resume: model.weights may "
        "name any model.safetensors in there that is whole",
        folder.string()));
  return std::nullopt;
}

}  // namespace millrace
