// The messages between data servers and consumers, and their encoding (docs/serving.md). Pure
// and thread-safe.
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
/// Maximum open requests of a consumer to one server.
inline constexpr std::size_t kMostCredit = 64;

/// All properties that determine the bytes of batches, by name; values as in a configuration.
using Facts = std::map<std::string, std::string>;

/// Identifies a stream. Its batch number k (0, 1, 2, ... from its start) is a pure function of the
/// data, the configuration and these members. A stream has no end.
struct Stream {
  std::uint64_t seed = 1;
  Share share;
  Cursor start;
};

// Messages from a consumer.

/// Sent on each new connection.
struct Hello {
  std::string consumer;  // name, constant for the consumer's lifetime
  Stream stream;
  Facts facts;  // facts known to the consumer, which the server must match
  // Pieces of shared memory still in use; the server may take back all others.
  std::vector<std::int64_t> held;
};
/// Requests these batches, preferably in this order.
struct Ask {
  std::vector<std::int64_t> numbers;
  std::int64_t shared_with = 0;  // process to share memory with, if possible; 0 = none
};
/// Returns these pieces of shared memory.
struct Release {
  std::vector<std::int64_t> pieces;
};
struct Ping {
  std::int64_t number = 0;  // to match the answer; 0 = none
};
/// The last message. Returns all shared memory except these pieces.
struct Bye {
  std::vector<std::int64_t> held;
};

// Messages from a consumer or any other client.

/// Requests the server's status. Needs no hello.
struct AskStatus {
  std::int64_t number = 0;  // to match the answer
};

// Messages from a server.

/// The answer to AskStatus.
struct Status {
  std::int64_t number = 0;
  std::string json;  // an object
};
/// An unnamed file that processes of the same user on the same host can open.
struct SharedFile {
  std::int64_t process = 0, descriptor = 0;  // /proc/PROCESS/fd/DESCRIPTOR
  std::uint64_t token = 0;                   // its content
};
struct Welcome {
  Facts facts;
  std::int64_t epoch_size = 0;
  std::optional<SharedFile>
      probe;  // a consumer that can read its token gets batches in shared memory
};
struct Refusal {
  std::string why;
  bool for_good = false;  // retrying is useless
};
/// The sender is unknown and must send hello (again).
struct Stranger {};
struct Pong {
  std::int64_t number = 0;  // number of the ping; 0 = none, or sent by an older server
  // Numbers requested before that ping and not yet answered. For any other number that the consumer
  // waits for, the request or its answer was lost.
  std::vector<std::int64_t> owed = {};
};
/// The pixels of a batch in shared memory.
struct SharedPiece {
  std::int64_t piece = 0;       // id for the release
  std::int64_t descriptor = 0;  // in the process of the welcome
  std::uint64_t file = 0;       // a new number means a new file, even with the same descriptor
  std::uint64_t file_bytes = 0, bytes = 0;  // of the file; of the pixels at its beginning
};
struct BatchHead {
  std::int64_t number = 0;
  Cursor cursor;
  std::int64_t epoch = 0;
  double progress = 0;
  std::vector<SkippedSample> skipped;  // samples skipped while making it
  std::vector<char> batch;             // header of batch_codec.h
  std::optional<SharedPiece> piece;    // nullopt = the pixels are the next frame
};
/// The batch with this number cannot be made.
struct Failure {
  enum Kind : int { kError, kConfig, kData };
  std::int64_t number = 0;
  Kind kind = kError;
  std::string why;
};

using Message = std::variant<Hello, Ask, Release, Ping, Bye, Welcome, Refusal, Stranger, Pong,
                             BatchHead, Failure, AskStatus, Status>;

std::string encode(Message message);

/// Thrown for a message with a wrong checksum.
struct DamagedMessage : DataError {
  using DataError::DataError;
};

/// Decodes a message. Throws DataError with `where` for other bytes. Allocates memory in proportion
/// to the bytes.
Message decode(std::string_view bytes, const std::string& where);

}  // namespace millrace::serving
