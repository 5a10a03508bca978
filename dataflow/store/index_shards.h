// Makes record stores over existing shards, whose images are not copied.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "millrace/dataflow/store/remote/byte_source.h"

namespace millrace {

struct ShardReport {
  std::int64_t images = 0;
  std::int64_t without_annotations = 0;  // images without a JSON file
  std::int64_t without_area = 0;         // objects left out because they are outside their image
  std::vector<std::string> classes;
};

/// Opens a shard by its path or URL.
using OpenShard = std::function<std::unique_ptr<ByteSource>(const std::string& name)>;

/// Reads whole shards, recognised by content: tar files in WebDataset's layout (KEY.jpg, or another
/// image, beside KEY.json: see sample_json.h) and TFRecord files of TensorFlow's Object Detection
/// API (tf_example.h). Writes a record store of all their samples, in order, to the new folder
/// `folder`; the images stay in the shards. Classes are numbered in the order of their first
/// objects; an image without an id gets its position, from 1. Throws Error with shard and byte or
/// member that cannot be read, ConfigError if the folder exists.
ShardReport index_shards(std::span<const std::string> shards, const OpenShard& open,
                         const std::filesystem::path& folder);

}  // namespace millrace
