// Messages of data servers and consumers, and their bytes (docs/wire-format.md). Pure; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/dataflow/engine/dataflow.h"

namespace millrace::serving {

inline constexpr int kProtocol = 2;
/// Maximum numbers that a consumer may have asked one server for and not received yet.
inline constexpr std::size_t kMostCredit = 64;

/// All that decides the bytes of batches, by name; values as in a configuration.
using Facts = std::map<std::string, std::string>;

/// Batch number k of a stream (0, 1, 2, ... from its start) is a pure function of the data, the
/// configuration and these. A stream has no end.
struct Stream {
  std::uint64_t seed = 1;
  Share share;
  Cursor start;
};

// From a consumer.

/// Said on each new connection.
struct Hello {
  std::string consumer;  // the same as long as the consumer lives
  Stream stream;
  Facts facts;  // those that it knows, all of which must hold for the server
  // Pieces of shared memory that it still needs; the server may take back all others
  std::vector<std::int64_t> held;
};
/// Wants these batches, preferably in this order.
struct Ask {
  std::vector<std::int64_t> numbers;
  std::int64_t shared_with = 0;  // > 0: in memory shared with this process, if it can be
};
/// Gives these pieces of shared memory back.
struct Release {
  std::vector<std::int64_t> pieces;
};
struct Ping {
  std::int64_t number = 0;  // for the answer; 0: none
};
/// The last message. Gives back all shared memory except these pieces.
struct Bye {
  std::vector<std::int64_t> held;
};

// From anyone.

/// How are you? Needs no hello.
struct AskStatus {
  std::int64_t number = 0;  // for the answer
};

// From a server.

/// Answers AskStatus.
struct Status {
  std::int64_t number = 0;
  std::string json;  // an object
};
/// An unnamed file that processes of the same user and host can open.
struct SharedFile {
  std::int64_t process = 0, descriptor = 0;  // /proc/PROCESS/fd/DESCRIPTOR
  std::uint64_t token = 0;                   // what it holds
};
struct Welcome {
  Facts facts;
  std::int64_t epoch_size = 0;
  std::optional<SharedFile>
      probe;  // a consumer that can read its token gets batches in shared memory
};
struct Refusal {
  std::string why;
  bool for_good = false;  // asking again is of no use
};
/// Who are you? Say hello (again).
struct Stranger {};
struct Pong {
  std::int64_t number = 0;  // of the ping; 0: of none, or of an older server's
  // Numbers asked for before that ping and not answered yet. Of any other number that the consumer
  // waits for, the ask or its answer was lost.
  std::vector<std::int64_t> owed = {};
};
/// Pixels of a batch in shared memory.
struct SharedPiece {
  std::int64_t piece = 0;       // what to release
  std::int64_t descriptor = 0;  // of the process in the welcome
  std::uint64_t file = 0;       // a new number: a new file, even with the same descriptor
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
                             BatchHead, Failure, AskStatus, Status>;

std::string encode(Message message);

/// A message with a wrong checksum.
struct DamagedMessage : DataError {
  using DataError::DataError;
};

/// Throws DataError naming `where` for other bytes. Takes memory in proportion to the bytes.
Message decode(std::string_view bytes, const std::string& where);

}  // namespace millrace::serving
