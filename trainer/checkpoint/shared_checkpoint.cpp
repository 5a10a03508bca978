#include "millrace/trainer/checkpoint/shared_checkpoint.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/log.h"
#include "millrace/trainer/checkpoint/memory_checkpoints.h"
#include "millrace/trainer/cluster/gather_values.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

/// A temporary folder that is removed with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    auto name = (fs::temp_directory_path() / "millrace-checkpoint-XXXXXX").string();
    if (!::mkdtemp(name.data()))
      throw Error(
          name +
          ": cannot create this folder for another rank's checkpoint; TMPDIR sets its location");
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code nothing_there;
    fs::remove_all(path_, nothing_there);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// Returns the names of the files in a folder, one per line.
std::string file_names(const fs::path& folder) {
  std::string names;
  for (const auto& entry : fs::directory_iterator(folder))
    names += entry.path().filename().string() + "\n";
  return names;
}

}  // namespace

std::optional<Checkpoint> newest_checkpoint_of(const fs::path& run, const Cluster& cluster) {
  std::optional<Checkpoint> newest;
  if (cluster.is_chief()) newest = newest_checkpoint(run / "checkpoints");
  const auto on_disk = newest ? newest->at.step : -1;
  const auto kept = newest_in_memory(run, cluster);
  const auto offers =
      gather_values(cluster, "newest checkpoint", std::max(on_disk, kept ? step_of(*kept) : -1));
  const auto best = std::ranges::max_element(offers);
  if (*best < 0) return std::nullopt;
  const auto from = best - offers.begin();
  if (cluster.is_chief() && *best > on_disk)
    log_info("newest checkpoint: step {} in the memory of {}, step {} on disk", *best,
             cluster.name(from), on_disk);
  if (cluster.rank() == from && *best == on_disk && cluster.size() == 1) return newest;
  return read_checkpoint(
      *best == on_disk || !kept ? checkpoint_of(run / "checkpoints", *best) : *kept, cluster, from);
}

Checkpoint read_checkpoint(const fs::path& checkpoint, const Cluster& cluster, std::int64_t from) {
  if (cluster.size() == 1) return read_checkpoint(checkpoint);
  const bool sends = cluster.rank() == from;
  const auto sent = [&](std::string_view what, const std::string& mine) {
    return std::move(cluster.gather(what, mine)[static_cast<std::size_t>(from)]);
  };
  std::optional<Checkpoint> read;
  if (sends) read = read_checkpoint(checkpoint);  // reports a damaged checkpoint by its own path
  std::istringstream names(sent("files of a checkpoint", sends ? file_names(checkpoint) : ""));
  std::optional<TemporaryFolder> received;
  if (!sends) received.emplace();
  for (std::string name; std::getline(names, name);) {
    const auto bytes = sent("a checkpoint's file", sends ? read_file(checkpoint / name) : "");
    if (!sends) write_file_atomically(received->path() / name, bytes);
  }
  return sends ? std::move(*read) : read_checkpoint(received->path());
}

}  // namespace millrace
