// Images and annotations packed into large files, which are read in place, without parsing.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/engine/source.h"
#include "millrace/dataflow/store/record_header.h"
#include "millrace/dataflow/store/remote/byte_source.h"
#include "millrace/dataflow/store/remote/remote.h"

namespace millrace {

/// Returns the folder or URL of a shard, in the form that RecordStore takes.
std::string shard_folder(const std::string& shard);

/// A packed folder and its shards. They never change, so any thread and process may read them. The
/// annotations of a remote store are fetched into a local file when it is opened, images when they
/// are expected or read.
class RecordStore final : public Source<Sample> {
 public:
  /// Opens a store. `folder` may be a URL (remote.h). Shards with an absolute path or a URL must be
  /// in one of the folders and URLs `shards`. Throws ConfigError if there is no finished store or a
  /// shard is elsewhere, Error with the file if it has another version, is truncated, damaged or
  /// unreachable.
  explicit RecordStore(const std::string& folder, const RemoteReading& remote = {},
                       std::span<const std::string> shards = {});

  const std::vector<std::string>& classes() const { return header_.classes; }

  std::int64_t size() const override { return static_cast<std::int64_t>(header_.records()); }

  /// Returns the sample as packed, with its `encoded` image. Throws Error if a file was truncated
  /// since, DataError if its annotations are damaged; the decoder checks the image's bytes.
  Sample operator[](std::int64_t index) const override;
  /// Returns the sample without outlines (see Instances) and image.
  Sample about(std::int64_t index) const override;
  void expect(std::int64_t index) const override;

 private:
  /// The location of an image.
  struct Place {
    const ByteSource& file;
    ByteRange range;
    std::uint64_t digest;
  };
  Place image(std::int64_t index) const;
  /// Return the index of a value in the header's lists, and its first byte.
  std::size_t position(RecordValue kind, std::int64_t index) const;
  std::uint64_t begin(std::size_t position) const;
  Sample decoded(RecordValue kind, std::int64_t index) const;

  RecordHeader header_;
  std::unique_ptr<const ByteSource> records_;
  std::unique_ptr<const ByteSource> annotations_;  // the values of records_ other than images
  std::vector<std::unique_ptr<const ByteSource>> shards_;
  std::vector<std::uint64_t> shard_ends_;  // number of records up to the end of each shard
};

}  // namespace millrace
