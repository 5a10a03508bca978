// Messages from data servers: any bytes are decoded or rejected with a DataError, and encoding and
// decoding a message, or a batch in it, again does not change it.
#include "millrace/dataflow/serving/messages.h"
#include "millrace/base/digest.h"
#include "millrace/base/errors.h"
#include "millrace/dataflow/store/batch_codec.h"
#include "tests/fuzz/laws.h"

#include <msgpack.hpp>

namespace millrace::fuzz {
namespace {

/// Wraps a body in an envelope without a checksum, so that any body can be decoded.
std::string in_envelope(std::string_view body) {
  msgpack::sbuffer bytes;
  msgpack::packer<msgpack::sbuffer> out(bytes);
  out.pack_array(4).pack("millrace").pack(serving::kProtocol).pack_nil();
  out.pack_bin(static_cast<std::uint32_t>(body.size()));
  out.pack_bin_body(body.data(), static_cast<std::uint32_t>(body.size()));
  return {bytes.data(), bytes.size()};
}

void check_batch(std::string_view header, std::string_view pixels) {
  const std::shared_ptr<std::uint8_t[]> bytes(new std::uint8_t[pixels.size() + 1]);
  std::memcpy(bytes.get(), pixels.data(), pixels.size());
  try {
    const auto batch = decode_batch(header, {bytes, pixels.size()}, "batch");
    const auto again = encode_header(batch);
    MILLRACE_LAW(digest(decode_batch(again, {bytes, pixels.size()}, "batch")) == digest(batch));
  } catch (const DataError& error) {
    MILLRACE_LAW(*error.what() != '\0');
  }
}

void check_message(std::string_view bytes, std::string_view pixels) {
  try {
    const auto message = serving::decode(bytes, "message");
    const auto written = serving::encode(message);
    MILLRACE_LAW(serving::encode(serving::decode(written, "message")) == written);
    if (const auto* head = std::get_if<serving::BatchHead>(&message))
      check_batch({head->batch.data(), head->batch.size()}, pixels);
  } catch (const DataError& error) {
    MILLRACE_LAW(*error.what() != '\0');
  }
}

}  // namespace

void check(Input input) {
  const auto kind = input.take<std::uint8_t>();
  const std::size_t count = input.take<std::uint8_t>();
  const auto all = input.rest();
  const auto pixels = all.substr(0, count), bytes = all.substr(pixels.size());
  if (kind % 4 == 0) check_message(bytes, pixels);
  if (kind % 4 == 1) check_message(in_envelope(bytes), pixels);
  if (kind % 4 >= 2) check_batch(bytes, pixels);
}

}  // namespace millrace::fuzz
