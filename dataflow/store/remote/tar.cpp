#include "millrace/dataflow/store/remote/tar.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <stdexcept>

#include "millrace/base/errors.h"

namespace millrace {
namespace {

constexpr std::uint64_t kBlock = 512;
constexpr std::uint64_t kMostDetails = 1 << 20;  // bytes of a long name or of pax records

/// Offset and size of a header's field.
struct Field {
  std::size_t begin, size;
};
constexpr Field kName{0, 100}, kMode{100, 8}, kOwner{108, 8}, kGroup{116, 8}, kSize{124, 12},
    kTime{136, 12}, kChecksum{148, 8}, kType{156, 1}, kMagic{257, 6}, kPrefix{345, 155};

std::uint64_t padded(std::uint64_t size) { return (size + kBlock - 1) / kBlock * kBlock; }

std::string_view text_at(std::string_view header, Field field) {
  const auto text = header.substr(field.begin, field.size);
  return text.substr(0, text.find('\0'));
}

/// Reads octal digits or, if the first bit is set, a binary number (GNU tar, from 8 GiB).
std::optional<std::uint64_t> number_at(std::string_view header, Field field) {
  auto text = header.substr(field.begin, field.size);
  std::uint64_t number = 0;
  if ((text.front() & 0x80) != 0) {
    for (const char c : text.substr(text.size() - 8)) number = number << 8 | (c & 0xFF);
    return number;
  }
  text = text_at(header, field);
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number, 8);
  if (problem != std::errc{} && !text.empty()) return {};
  return number;
}

/// Returns the sum of a header's bytes, with the checksum's own bytes as spaces.
std::uint64_t checksum(std::string_view header) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < header.size(); ++i) {
    const bool own = i >= kChecksum.begin && i < kChecksum.begin + kChecksum.size;
    sum += own ? ' ' : static_cast<unsigned char>(header[i]);
  }
  return sum;
}

/// Returns the value of a pax record "LENGTH KEY=VALUE\n".
std::optional<std::string> pax_value(std::string_view records, std::string_view key) {
  while (!records.empty()) {
    std::size_t length = 0;
    std::from_chars(records.data(), records.data() + records.size(), length);
    const auto record = records.substr(0, length);
    const auto space = record.find(' '), equals = record.find('=');
    if (length == 0 || length > records.size() || space >= equals || equals == record.npos)
      return {};
    if (record.substr(space + 1, equals - space - 1) == key)
      return std::string(record.substr(equals + 1, record.size() - equals - 2));
    records.remove_prefix(length);
  }
  return {};
}

std::optional<std::uint64_t> decimal(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc{}) return {};
  return number;
}

/// Name and size from extension headers, which replace those in the member's header.
struct Before {
  std::optional<std::string> name;
  std::optional<std::uint64_t> size;
};

}  // namespace

std::string tar_header(std::string_view name, std::uint64_t size) {
  if (name.size() > kName.size) throw std::invalid_argument("a tar member's name is too long");
  std::string header(kBlock, '\0');
  const auto put = [&](Field field, std::string_view text) {
    header.replace(field.begin, text.size(), text);
  };
  put(kName, name);
  put(kMode, "0000644");
  put(kOwner, "0000000");
  put(kGroup, "0000000");
  put(kSize, fmt::format("{:011o}", size));
  put(kTime, "00000000000");
  put(kType, "0");
  put(kMagic, std::string_view("ustar\00000", 8));
  put(kChecksum, fmt::format("{:06o}", checksum(header)) + std::string("\0 ", 2));
  return header;
}

std::string tar_padding(std::uint64_t size) { return std::string(padded(size) - size, '\0'); }

std::string tar_end() { return std::string(2 * kBlock, '\0'); }

bool is_tar(const ByteSource& file) {
  if (file.size() < kBlock) return false;
  const auto held = file.read({0, kBlock});
  return number_at(held.bytes, kChecksum) == checksum(held.bytes);
}

void read_tar(const ByteSource& file, const std::function<void(const TarMember&)>& visit) {
  Before before;
  for (std::uint64_t at = 0; at < file.size();) {
    const auto fail = [&](std::string_view why) {
      throw Error(fmt::format("{}: {} at byte {}", file.name(), why, at));
    };
    if (at + kBlock > file.size()) fail("truncated tar file");
    const auto held = file.read({at, kBlock});
    const auto header = held.bytes;
    if (header.find_first_not_of('\0') == header.npos) return;  // the end of the archive
    if (number_at(header, kChecksum) != checksum(header)) fail("not the header of a tar member");
    const auto own_size = number_at(header, kSize);
    if (!own_size) fail("a tar member has no size");
    const char type = header[kType.begin];
    const bool is_long_name = type == 'L', is_pax = type == 'x';
    const auto size = is_long_name || is_pax ? *own_size : before.size.value_or(*own_size);
    const auto begin = at + kBlock;
    if (size > file.size() - begin) fail("tar file truncated in a member");
    if ((is_long_name || is_pax) && size > kMostDetails) fail("a tar member's name is too long");
    if (is_long_name) {
      const auto text = file.read({begin, size});
      before.name = std::string(text.bytes.substr(0, text.bytes.find('\0')));
    } else if (is_pax) {
      const auto records = file.read({begin, size});
      if (auto path = pax_value(records.bytes, "path")) before.name = std::move(path);
      if (const auto text = pax_value(records.bytes, "size")) {
        before.size = decimal(*text);
        if (!before.size) fail("a tar member has no size");
      }
    } else if (type != 'g') {
      const auto prefix = header.substr(kMagic.begin, 5) == "ustar" && header[262] == '\0'
                              ? text_at(header, kPrefix)
                              : std::string_view();
      const auto name = text_at(header, kName);
      if (type == '0' || type == '\0')
        visit({before.name ? *before.name
                           : fmt::format("{}{}{}", prefix, prefix.empty() ? "" : "/", name),
               begin, size});
      before = {};
    }
    at = begin + padded(size);
  }
  throw Error(
      fmt::format("{}: truncated tar file: at byte {} its end, a block of zeros, is missing",
                  file.name(), file.size()));
}

}  // namespace millrace
