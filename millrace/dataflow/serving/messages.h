// What data servers and their consumers say to each other, and how it lies in bytes
// (docs/wire-format.md). Pure; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "millrace/dataflow/serving/stream.h"

namespace millrace::serving {

/// Of the messages; a program that reads another one refuses it.
inline constexpr int kProtocol = 2;
/// Numbers that a consumer may have asked one server for and not received yet.
inline constexpr std::size_t kMostCredit = 64;

/// What decides the bytes of batches, by name; values as people write them.
using Facts = std::map<std::string, std::string>;

// From a consumer.

/// Who is there and what it wants; again after each new connection.
struct Hello {
  std::string consumer;  // the same as long as the consumer lives
  Stream stream;
  Facts facts;  // those that it knows, all of which must hold for the server
  // Pieces of shared memory that it needs still; others may be taken back
  std::vector<std::int64_t> held;
};
/// Wants these batches, in this order if it can be.
struct Ask {
  std::vector<std::int64_t> numbers;
  std::int64_t shared_with = 0;  // > 0: in memory shared with this process, if it can be
};
/// Needs these pieces of shared memory no longer.
struct Release {
  std::vector<std::int64_t> pieces;
};
struct Ping {};
/// The last word. All that was asked and all shared memory but these pieces is needed no longer.
struct Bye {
  std::vector<std::int64_t> held;
};

// From a server.

/// A file without a name that processes of the same user on the same host can open.
struct SharedFile {
  std::int64_t process = 0, descriptor = 0;  // /proc/PROCESS/fd/DESCRIPTOR
  std::uint64_t token = 0;                   // what it holds
};
struct Welcome {
  Facts facts;
  std::int64_t epoch_size = 0;
  std::optional<SharedFile> probe;  // who can read its token can have batches in shared memory
};
/// There is nothing to be had for this consumer.
struct Refusal {
  std::string why;
  bool for_good = false;  // to ask again is of no use
};
/// Who are you? Say hello (again).
struct Stranger {};
struct Pong {};
/// Where the pixels of a batch lie, if not in the next frame.
struct SharedPiece {
  std::int64_t piece = 0;       // what to release
  std::int64_t descriptor = 0;  // of the process in the welcome
  std::uint64_t file = 0;       // another number: another file, though the descriptor be the same
  std::uint64_t file_bytes = 0, bytes = 0;  // of the file; of the pixels, with which it begins
};
struct BatchHead {
  std::int64_t number = 0;
  Cursor cursor;
  std::int64_t epoch = 0;
  double progress = 0;
  std::vector<SkippedSample> skipped;  // on its way
  std::vector<char> batch;             // the header of batch_codec.h
  std::optional<SharedPiece> piece;    // none: the pixels are the next frame
};
/// The batch of this number cannot be made.
struct Failure {
  enum Kind : int { kError, kConfig, kData };
  std::int64_t number = 0;
  Kind kind = kError;
  std::string why;
};

using Message = std::variant<Hello, Ask, Release, Ping, Bye, Welcome, Refusal, Stranger, Pong,
                             BatchHead, Failure>;

std::string encode(Message message);

/// Throws DataError naming `where` for anything that `encode` cannot have written. Takes memory in
/// proportion to the bytes.
Message decode(std::string_view bytes, const std::string& where);

}  // namespace millrace::serving
