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

/// A packed folder and its shards, never written: any thread and process may read it. The
/// annotations of a remote store are fetched at the start into a local file, images when they are
/// expected or read.
class RecordStore final : public Source<Sample> {
 public:
  /// `folder` may be a URL (remote.h). Shards outside it must be in one of `shards`: see
  /// shard_place. Throws ConfigError if there is no finished store or a shard is elsewhere, Error
  /// naming the file if it is of another version, cut short, damaged or out of reach.
  explicit RecordStore(const std::string& folder, const RemoteReading& remote = {},
                       std::span<const std::string> shards = {});

  const std::vector<std::string>& classes() const { return header_.classes; }

  std::int64_t size() const override { return static_cast<std::int64_t>(header_.records()); }

  /// The sample as it was packed, with its `encoded` image. Throws Error if a file was cut short
  /// since, DataError if its annotations are damaged; the image's bytes are checked by the decoder.
  Sample operator[](std::int64_t index) const override;
  /// The same without outlines (see Instances) and the image.
  Sample about(std::int64_t index) const override;
  void expect(std::int64_t index) const override;

 private:
  /// The place of an image.
  struct Place {
    const ByteSource& file;
    ByteRange range;
    std::uint64_t digest;
  };
  Place image(std::int64_t index) const;
  /// The position of a value in the header's lists, and its begin.
  std::size_t position(RecordValue kind, std::int64_t index) const;
  std::uint64_t begin(std::size_t position) const;
  Sample decoded(RecordValue kind, std::int64_t index) const;

  RecordHeader header_;
  std::unique_ptr<const ByteSource> records_;
  std::unique_ptr<const ByteSource> annotations_;  // the values of records_ that are no images
  std::vector<std::unique_ptr<const ByteSource>> shards_;
  std::vector<std::uint64_t> shard_ends_;  // records up to the end of each shard
};

}  // namespace millrace
