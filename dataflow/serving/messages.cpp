#include "millrace/dataflow/serving/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "millrace/base/digest.h"
#include "millrace/dataflow/store/codec_pieces.h"

namespace millrace::serving {
namespace {

using namespace codec;

constexpr const char* kMagic = "millrace";
constexpr std::size_t kMostName = 64;
constexpr std::int64_t kMostRanks = 1 << 20;

// The members of each message: `each(name, member)` packs, reads or counts them. Members passed to
// `each.optional` are newer than the protocol version: they may be missing, and default values are
// not sent.
void members(auto& each, Cursor& cursor) {
  each("next", cursor.next);
  each("pending", cursor.pending);
}
void members(auto& each, SharedFile& file) {
  each("process", file.process);
  each("descriptor", file.descriptor);
  each("token", file.token);
}
void members(auto& each, SharedPiece& piece) {
  each("piece", piece.piece);
  each("descriptor", piece.descriptor);
  each("file", piece.file);
  each("file_bytes", piece.file_bytes);
  each("bytes", piece.bytes);
}
void members(auto& each, Hello& hello) {
  each("consumer", hello.consumer);
  each("seed", hello.stream.seed);
  each("rank", hello.stream.share.rank);
  each("ranks", hello.stream.share.ranks);
  each("start", hello.stream.start);
  each("facts", hello.facts);
  each("held", hello.held);
}
void members(auto& each, Ask& ask) {
  each("numbers", ask.numbers);
  each("shared_with", ask.shared_with);
}
void members(auto& each, Release& release) { each("pieces", release.pieces); }
void members(auto& each, Ping& ping) { each.optional("number", ping.number); }
void members(auto& each, Bye& bye) { each("held", bye.held); }
void members(auto& each, Welcome& welcome) {
  each("facts", welcome.facts);
  each("epoch_size", welcome.epoch_size);
  each("probe", welcome.probe);
}
void members(auto& each, Refusal& refusal) {
  each("why", refusal.why);
  each("for_good", refusal.for_good);
}
void members(auto&, Stranger&) {}
void members(auto& each, Pong& pong) {
  each.optional("number", pong.number);
  each.optional("owed", pong.owed);
}
void members(auto& each, SkippedSample& skipped) {
  each("epoch", skipped.epoch);
  each("place", skipped.place);
  each("sample", skipped.sample);
  each("why", skipped.why);
}
void members(auto& each, BatchHead& head) {
  each("number", head.number);
  each("cursor", head.cursor);
  each("epoch", head.epoch);
  each("progress", head.progress);
  each("skipped", head.skipped);
  each("batch", head.batch);
  each("piece", head.piece);
}
void members(auto& each, Failure& failure) {
  each("number", failure.number);
  each("kind", failure.kind);
  each("why", failure.why);
}

void members(auto& each, AskStatus& ask) { each("number", ask.number); }
void members(auto& each, Status& status) {
  each("number", status.number);
  each("json", status.json);
}

/// Names of messages on the wire, by index in the variant.
constexpr const char* kNames[] = {"hello",   "ask",        "release",  "ping", "bye",
                                  "welcome", "refusal",    "stranger", "pong", "batch",
                                  "failure", "ask_status", "status"};
static_assert(std::size(kNames) == std::variant_size_v<Message>);

struct Count {
  std::uint32_t of = 0;
  void operator()(const char*, const auto&) { ++of; }
  template <class T>
  void optional(const char*, const T& value) {
    if (value != T()) ++of;
  }
};

template <class T>
concept HasMembers = requires(Count& count, T& value) {
  members(count, value);
};

struct Write {
  Packer& out;

  template <class T>
  void operator()(const char* key, T& value) {
    out.pack(key);
    put(value);
  }

  template <class T>
  void optional(const char* key, T& value) {
    if (value != T()) (*this)(key, value);
  }

  template <HasMembers T>
  void put(T& value, const char* type = nullptr) {
    Count count;
    members(count, value);
    out.pack_map(count.of + (type ? 1 : 0));
    if (type) out.pack("type").pack(type);
    members(*this, value);
  }

  template <HasMembers T>
  void put(std::optional<T>& value) {
    if (value)
      put(*value);
    else
      out.pack_nil();
  }
  template <HasMembers T>
  void put(std::vector<T>& values) {
    out.pack_array(static_cast<std::uint32_t>(values.size()));
    for (auto& value : values) put(value);
  }
  void put(Failure::Kind kind) { out.pack(static_cast<int>(kind)); }
  void put(const auto& value) { out.pack(value); }
};

void check(const Cursor& cursor) {
  require(cursor.next >= 0, "negative cursor");
  std::int64_t least = 0;
  for (const auto position : cursor.pending) {
    require(position >= least && position < cursor.next, "invalid cursor");
    least = position + 1;
  }
}
void check(const Hello& hello) {
  const auto& [rank, ranks] = hello.stream.share;
  require(!hello.consumer.empty() && hello.consumer.size() <= kMostName &&
              std::ranges::all_of(hello.consumer, [](char c) { return c > ' ' && c <= '~'; }),
          "a consumer's name must be 1 to 64 printable characters");
  require(ranks >= 1 && ranks <= kMostRanks && rank >= 0 && rank < ranks, "invalid rank");
}
void check(const Ask& ask) {
  require(ask.numbers.size() <= kMostCredit, "requests too many batches at once");
  require(std::ranges::all_of(ask.numbers, [](auto number) { return number >= 0; }),
          "requests a negative number");
}
void check(const SharedPiece& piece) {
  require(piece.bytes <= piece.file_bytes, "pixels are longer than their file");
}
void check(const BatchHead& head) {
  require(head.number >= 0 && head.epoch >= 0, "negative number");
  require(std::isfinite(head.progress), "the progress is not finite");
}
void check(const auto&) {}

struct Read {
  const Fields& fields;

  template <class T>
  void operator()(const char* key, T& value) {
    get(key, value);
  }

  template <class T>
  void optional(const char* key, T& value) {
    if (fields.find(key)) get(key, value);
  }

  template <HasMembers T>
  static void get_map(const Fields& of, T& value) {
    Read read{of};
    members(read, value);
    check(value);
  }

  template <HasMembers T>
  void get(const char* key, T& value) {
    get_map(Fields(fields.at(key)), value);
  }
  template <HasMembers T>
  void get(const char* key, std::optional<T>& value) {
    const auto& object = fields.at(key);
    if (!object.is_nil()) get_map(Fields(object), value.emplace());
  }
  template <HasMembers T>
  void get(const char* key, std::vector<T>& values) {
    const auto& list = fields.at(key);
    require(list.type == msgpack::type::ARRAY, "expected a list");
    for (const auto& object : std::span(list.via.array.ptr, list.via.array.size))
      get_map(Fields(object), values.emplace_back());
  }
  void get(const char* key, Failure::Kind& kind) {
    const auto value = fields.value<int>(key);
    require(value >= 0 && value <= Failure::kData, "unknown kind of failure");
    kind = static_cast<Failure::Kind>(value);
  }
  template <class T>
  void get(const char* key, T& value) {
    value = fields.value<T>(key);
  }
};

template <std::size_t k = 0>
Message read_message(std::string_view type, const Fields& fields) {
  if constexpr (k == std::variant_size_v<Message>) {
    throw Wrong{fmt::format("unknown message type '{}'", type)};
  } else {
    if (type != kNames[k]) return read_message<k + 1>(type, fields);
    std::variant_alternative_t<k, Message> message;
    Read::get_map(fields, message);
    return message;
  }
}

/// Checks an envelope and returns its body.
std::string_view open(const msgpack::object& envelope, const std::string& where) {
  require(envelope.type == msgpack::type::ARRAY && envelope.via.array.size >= 2 &&
              envelope.via.array.ptr[0] == msgpack::object(kMagic),
          "not a Millrace protocol message");
  const auto* parts = envelope.via.array.ptr;
  if (parts[1] != msgpack::object(kProtocol))
    throw Wrong{
        fmt::format("another version of the protocol than {}, which this program uses", kProtocol)};
  require(envelope.via.array.size == 4 && parts[3].type == msgpack::type::BIN &&
              (parts[2].is_nil() || parts[2].type == msgpack::type::POSITIVE_INTEGER),
          "not [name, version, checksum, body]");
  const std::string_view body(parts[3].via.bin.ptr, parts[3].via.bin.size);
  if (!parts[2].is_nil() && digest(body.data(), body.size()) != parts[2].via.u64)
    throw DamagedMessage(where, "damaged message: checksum mismatch");
  return body;
}

}  // namespace

std::string encode(Message message) {
  msgpack::sbuffer body;
  Packer fields(body);
  std::visit([&](auto& m) { Write{fields}.put(m, kNames[message.index()]); }, message);
  msgpack::sbuffer envelope;
  Packer out(envelope);
  out.pack_array(4).pack(kMagic).pack(kProtocol).pack(digest(body.data(), body.size()));
  pack_row(out, body.data(), body.size());
  return {envelope.data(), envelope.size()};
}

Message decode(std::string_view bytes, const std::string& where) {
  Message message;
  unpack(bytes, where, "message", [&](const msgpack::object& envelope) {
    unpack(open(envelope, where), where, "message", [&](const msgpack::object& body) {
      const Fields fields(body);
      message = read_message(fields.value<std::string>("type"), fields);
    });
  });
  return message;
}

}  // namespace millrace::serving
