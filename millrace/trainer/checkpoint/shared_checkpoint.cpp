#include "millrace/trainer/checkpoint/shared_checkpoint.h"

#include <ATen/core/Tensor.h>

#include <cstdlib>
#include <sstream>
#include <string>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

/// Removed with this object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    auto name = (fs::temp_directory_path() / "millrace-checkpoint-XXXXXX").string();
    if (!::mkdtemp(name.data()))
      throw Error(name +
                  ": this folder, for the chief's checkpoint, cannot be made; TMPDIR says "
                  "where such folders are");
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

/// The files in a folder, one per line.
std::string file_names(const fs::path& folder) {
  std::string names;
  for (const auto& entry : fs::directory_iterator(folder))
    names += entry.path().filename().string() + "\n";
  return names;
}

}  // namespace

std::optional<Checkpoint> newest_checkpoint(const fs::path& folder, const Cluster& cluster) {
  std::optional<Checkpoint> newest;
  if (cluster.is_chief()) newest = newest_checkpoint(folder);
  if (cluster.size() == 1) return newest;
  const auto step = cluster.broadcast(
      "newest checkpoint", newest ? checkpoint_of(folder, newest->at.step).string() : "");
  if (step.empty()) return std::nullopt;
  return read_checkpoint(step, cluster);
}

Checkpoint read_checkpoint(const fs::path& checkpoint, const Cluster& cluster) {
  if (cluster.size() == 1) return read_checkpoint(checkpoint);
  const bool chief = cluster.is_chief();
  std::optional<Checkpoint> read;
  if (chief) read = read_checkpoint(checkpoint);  // says what is wrong with it
  std::istringstream names(
      cluster.broadcast("files of a checkpoint", chief ? file_names(checkpoint) : ""));
  std::optional<TemporaryFolder> received;
  if (!chief) received.emplace();
  for (std::string name; std::getline(names, name);) {
    const auto bytes =
        cluster.broadcast("a checkpoint's file", chief ? read_file(checkpoint / name) : "");
    if (!chief) write_file_atomically(received->path() / name, bytes);
  }
  return chief ? std::move(*read) : read_checkpoint(received->path());
}

}  // namespace millrace
