#include "millrace/trainer/checkpoint/memory_checkpoints.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <string_view>
#include <utility>

#include "millrace/base/digest.h"
#include "millrace/base/disk/private_folder.h"
#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/log.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

fs::path record_of(const fs::path& run) { return run / "memory"; }

/// Creates this user's folder of in-memory checkpoints on this host. Throws Error if other users
/// may have written to it.
fs::path memory_folder() {
  auto folder = fs::path("/dev/shm") / fmt::format("millrace-{}", ::geteuid());
  make_private_folder(folder);
  return folder;
}

std::string random_number() {
  std::random_device random;
  return hex(std::uint64_t{random()} << 32 | random());
}

/// Returns true for "RUN-NUMBER/START-NUMBER", which cannot lead to a folder elsewhere.
bool is_name(std::string_view text) {
  const auto is_digit = [](char c) { return ('0' <= c && c <= '9') || ('a' <= c && c <= 'f'); };
  const auto slash = text.find('/');
  return slash != text.npos && slash > 0 && slash + 1 < text.size() &&
         std::ranges::all_of(text.substr(0, slash), is_digit) &&
         std::ranges::all_of(text.substr(slash + 1), is_digit);
}

/// Returns the name in a run's record; empty if not found or it is invalid.
std::string recorded(const fs::path& run) {
  const auto record = record_of(run);
  if (!fs::exists(record)) return "";
  auto name = read_file(record);
  if (is_name(name)) return name;
  log_warning("{}: not the name of a folder of checkpoints in memory; ignored", record.string());
  return "";
}

std::string new_name(const fs::path& run) {
  const auto before = recorded(run);
  return (before.empty() ? random_number() : before.substr(0, before.find('/'))) + "/" +
         random_number();
}

/// Returns the part of a checkpoint that only rank 0 has, as text.
std::string to_text(const Checkpoint& checkpoint) {
  return json{{"callbacks", checkpoint.callbacks}, {"latest", checkpoint.latest}}.dump();
}

void set_from_text(Checkpoint& checkpoint, const std::string& text) {
  const auto parsed = json::parse(text);
  parsed.at("callbacks").get_to(checkpoint.callbacks);
  checkpoint.latest.clear();
  for (const auto& [name, value] : parsed.at("latest").items())  // JSON has no NaN
    checkpoint.latest[name] = value.is_null() ? std::nan("") : value.get<double>();
}

}  // namespace

MemoryCheckpoints::MemoryCheckpoints(const fs::path& run, const Cluster& cluster)
    : cluster_(cluster),
      record_(record_of(run)),
      name_(cluster.broadcast("checkpoints in memory", cluster.is_chief() ? new_name(run) : "")) {
  if (cluster.local_rank() != 0) return;
  or_go_on_without([&] {
    folder_ = memory_folder() / name_;
    writer_.emplace(folder_);
  });
}

void MemoryCheckpoints::save(Checkpoint mine) {
  std::optional<fs::path> before;
  or_go_on_without([&] {
    if (writer_) before = writer_->collect(/*wait=*/true);
    if (before && cluster_.is_chief() && !std::exchange(recorded_, true))
      write_file_atomically(record_, name_);
  });
  const auto chiefs =
      cluster_.broadcast("states of the callbacks", cluster_.is_chief() ? to_text(mine) : "");
  if (!writer_) return;
  if (!cluster_.is_chief()) set_from_text(mine, chiefs);
  or_go_on_without([&] {
    // By now, rank 0 has recorded this start, so hosts may remove the checkpoints of earlier
    // starts.
    if (before) remove_older(*before);
    writer_->write(std::move(mine));
  });
}

/// Does not end training if `work` fails, since there are checkpoints on disk.
void MemoryCheckpoints::or_go_on_without(const std::function<void()>& work) try {
  work();
} catch (const std::exception& problem) {
  writer_.reset();
  log_warning("{}; training continues without checkpoints in memory on this host", problem.what());
}

void MemoryCheckpoints::remove_older(const fs::path& newest) const {
  for (const auto& start : fs::directory_iterator(folder_.parent_path()))
    if (start.path() != folder_) fs::remove_all(start.path());
  for (const auto& other : list_checkpoints(folder_))
    if (other != newest) fs::remove_all(other);
}

void MemoryCheckpoints::remove() {
  if (folder_.empty()) return;
  writer_.reset();  // waits for a checkpoint that is being written
  std::error_code remains;
  if (cluster_.is_chief()) fs::remove(record_, remains);
  fs::remove_all(folder_.parent_path(), remains);
}

std::optional<fs::path> newest_in_memory(const fs::path& run, const Cluster& cluster) {
  const auto name =
      cluster.broadcast("checkpoints in memory", cluster.is_chief() ? recorded(run) : "");
  if (name.empty() || cluster.local_rank() != 0) return std::nullopt;
  try {
    const auto folder = memory_folder() / name;
    if (const auto newest = newest_checkpoint(folder))
      return checkpoint_of(folder, newest->at.step);
  } catch (const Error& problem) {
    log_warning("{}; using checkpoints on disk", problem.what());
  }
  return std::nullopt;
}

}  // namespace millrace
